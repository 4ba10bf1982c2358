"""Seconds of baal's BatchBALD on given probabilities, on the clock and of the processors, as JSON.

    python batch_bald_baal.py probs.npy 10

The file holds (rows, classes, draws); the settings are baal's own.
"""

import json
import sys
import time

import numpy as np
from baal.active.heuristics import BatchBALD


def main() -> None:
    probs = np.load(sys.argv[1])
    heuristic = BatchBALD(num_samples=int(sys.argv[2]))
    began, spent = time.perf_counter(), time.process_time()
    heuristic(probs)
    print(json.dumps([time.perf_counter() - began, time.process_time() - spent]))


if __name__ == "__main__":
    main()
