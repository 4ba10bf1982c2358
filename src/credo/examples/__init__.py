"""The paper's practical examples, conditions on functions and a sample table, as short programs for `credo example`."""

# What `credo example` lists. Nothing heavy is imported here.
EXAMPLES = {
    "conditions": "a function that rises, is even, or obeys an equation: the same network with and without knowing it",
    "mnist": "I: a digit, a digit of a class never seen, and white noise, by an ensemble of variational posteriors",
    "paperfold": "III: a posterior with two modes, and which of five methods find and weigh them",
    "sparse": "II: nine outputs, few measurements, one broken sensor, and what each part of a model is worth",
    "table": "train.csv and test.csv with words, dates and empty cells, to try the command line on",
}
