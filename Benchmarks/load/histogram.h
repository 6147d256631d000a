// SPDX-License-Identifier: Apache-2.0
// Latencies in microseconds, kept in buckets that grow with the value: no entry is off by more than 0.2 %.
#pragma once
#include <stdint.h>

void histogram_record(uint64_t microseconds);

// The latency that `share` (0...1) of what was recorded does not exceed; 0 when nothing was.
uint64_t histogram_percentile(double share);
