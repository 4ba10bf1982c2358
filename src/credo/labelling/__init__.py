"""Labels from people: a pool of items, a log of answers, a model that learns meanwhile and says what to ask next."""
