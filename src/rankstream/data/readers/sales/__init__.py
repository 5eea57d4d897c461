"""Receipts, stock, visits and prices of shops: which offer each sale was made from, and what that assumes."""
