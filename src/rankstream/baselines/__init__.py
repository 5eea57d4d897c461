"""What people use instead: estimators from the literature, on the same data and with the same oracle (Appendix B)."""
