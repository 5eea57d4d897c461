"""Sources of records: text lines, tables, JSON, workbooks, Parquet, PrefLib and data frames."""
