// SPDX-License-Identifier: Apache-2.0
#ifndef COUNTERSIGN_METER_H
#define COUNTERSIGN_METER_H

#include <stdint.h>

/// The allocations by this thread since it started. Memory that was freed still counts.
typedef struct {
    uint64_t allocations;
    /// The requested sizes, without the allocator's overhead.
    uint64_t bytes;
} meter_tally;

meter_tally meter_allocated(void);

/// Stops counting this thread's allocations until `meter_resume`.
void meter_pause(void);
void meter_resume(void);

/// The processor time of this thread in nanoseconds.
uint64_t meter_processor_time(void);

/// Starts counting this thread's user-mode instructions. Returns a descriptor, or -1 if the machine does not allow it.
int meter_open_instructions(void);
uint64_t meter_instructions(int descriptor);

/// Does nothing, but is opaque to the compiler of the caller.
void meter_keep(const void *value);

#endif
