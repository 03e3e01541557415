"""Settings of preparations, which sample answers of a model and make data of them."""
