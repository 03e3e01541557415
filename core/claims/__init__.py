"""What a paper asserts, as data: measures, and what they are held against."""
