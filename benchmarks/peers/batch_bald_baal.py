"""Seconds of baal's BatchBALD on given probabilities, on the clock and of the processors, as JSON.

    python batch_bald_baal.py probs.npy 10 1000

The file holds (rows, classes, draws); the others are how many rows to choose, and how many answers to them to average.
baal keeps a number for each row of the pool, each answer and each class: for 50,000 rows and ten classes its own 500
answers for each draw would take 186 GiB.
"""

import json
import sys
import time

import numpy as np
from baal.active.heuristics import BatchBALD


def main() -> None:
    probs = np.load(sys.argv[1])
    num_batch, num_answers = map(int, sys.argv[2:])
    heuristic = BatchBALD(num_samples=num_batch, num_draw=num_answers // probs.shape[-1])
    began, spent = time.perf_counter(), time.process_time()
    heuristic(probs)
    print(json.dumps([time.perf_counter() - began, time.process_time() - spent]))


if __name__ == "__main__":
    main()
