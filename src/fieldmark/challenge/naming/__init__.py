"""Pages on which organisms are named: by a model (`identify`), and by the person who checks a model (`review`)."""
