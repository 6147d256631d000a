// SPDX-License-Identifier: Apache-2.0
// Processor time of processes, from proc(5).
#pragma once

// User and system time in seconds of the process and its descendants, including those that it has waited for.
double process_tree_seconds(int pid);
