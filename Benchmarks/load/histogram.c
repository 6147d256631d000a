// SPDX-License-Identifier: Apache-2.0
#include "histogram.h"

enum { bucketsPerDoubling = 512, doublings = 30 };

static uint64_t buckets[bucketsPerDoubling * doublings];
static uint64_t recorded;

static int bucket_of(uint64_t value) {
    if (value < bucketsPerDoubling) return (int)value;
    int doubling = 63 - __builtin_clzll(value) - 9;
    return bucketsPerDoubling + doubling * bucketsPerDoubling + (int)((value >> doubling) - bucketsPerDoubling);
}

static uint64_t value_of(int bucket) {
    if (bucket < bucketsPerDoubling) return (uint64_t)bucket;
    int doubling = (bucket - bucketsPerDoubling) / bucketsPerDoubling;
    return (uint64_t)((bucket - bucketsPerDoubling) % bucketsPerDoubling + bucketsPerDoubling) << doubling;
}

void histogram_record(uint64_t microseconds) {
    const uint64_t longest = 1ull << 36;
    buckets[bucket_of(microseconds < longest ? microseconds : longest)]++;
    recorded++;
}

uint64_t histogram_percentile(double share) {
    if (recorded == 0) return 0;
    uint64_t wanted = (uint64_t)(share * (double)recorded + 0.5), seen = 0;
    if (wanted == 0) wanted = 1;
    for (int bucket = 0; bucket < bucketsPerDoubling * doublings; bucket++) {
        seen += buckets[bucket];
        if (seen >= wanted) return value_of(bucket);
    }
    return 0;
}
