"""The paper's computational study (Section 5 and Appendix G): instances, methods, metrics, figures and a report.

``rankstream reproduce`` runs it. Settings are the small TOML files in ``settings``; copy one, change it, and name the
copy at the command line.
"""
