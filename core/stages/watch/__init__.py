"""What is watched while a training runs."""
