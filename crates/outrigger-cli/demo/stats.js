// Statistics over a list of numbers. The list itself is left as it is.

export function mean(values) {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

export function median(values) {
  const sorted = [...values].sort();
  const middle = Math.floor(sorted.length / 2);
  if (sorted.length % 2 === 1) return sorted[middle];
  return mean([sorted[middle - 1], sorted[middle]]);
}
