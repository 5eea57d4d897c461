"""The doors: estimate and its methods, fit within seconds, intervals, the scikit-learn face."""
