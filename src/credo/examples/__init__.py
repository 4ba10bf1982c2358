"""The paper's practical examples, as short programs; `credo example` runs them. Nothing heavy is imported here."""

# What `credo example` lists: a line for each.
EXAMPLES = {
    "mnist": "I: a digit, a digit of a class never seen, and white noise, by an ensemble of variational posteriors",
    "paperfold": "III: a posterior with two modes, and which of five methods find and weigh them",
}
