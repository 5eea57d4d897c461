"""Many markets: from one store to ten thousand, on one machine or on a cluster."""
