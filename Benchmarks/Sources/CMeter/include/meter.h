// SPDX-License-Identifier: Apache-2.0
#ifndef COUNTERSIGN_METER_H
#define COUNTERSIGN_METER_H

#include <stdint.h>

/// What this thread has asked of malloc and its kin since it began; what it gave back is not taken off.
typedef struct {
    uint64_t allocations;
    /// As they were asked for, without what the allocator adds.
    uint64_t bytes;
} meter_tally;

meter_tally meter_allocated(void);

/// What this thread allocates from here on is not counted, until `meter_resume`.
void meter_pause(void);
void meter_resume(void);

/// Nanoseconds of processor time that this thread has used.
uint64_t meter_processor_time(void);

/// Starts to count this thread's instructions outside the kernel; -1 where the machine does not let us.
int meter_open_instructions(void);
uint64_t meter_instructions(int descriptor);

/// Does nothing, which the compiler of the caller does not know.
void meter_keep(const void *value);

#endif
