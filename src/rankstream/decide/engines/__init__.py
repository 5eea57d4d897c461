"""The engines behind `best_offer`, each with its compiled loops, and the choice among them."""
