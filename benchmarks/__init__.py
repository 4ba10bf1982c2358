"""Speed, measured side by side: ratios from one run, alternating, best of several."""
