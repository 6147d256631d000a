// SPDX-License-Identifier: Apache-2.0
// A histogram of latencies in microseconds. Bucket sizes grow with the value, so that the error is at most 0.2 %.
#pragma once
#include <stdint.h>

void histogram_record(uint64_t microseconds);

// The latency that `share` (0...1) of the recorded values do not exceed; 0 if there are none.
uint64_t histogram_percentile(double share);
