// SPDX-License-Identifier: Apache-2.0
// What a process has used, from proc(5).
#pragma once

// User and system time of the process, its children and theirs, the ended ones that were waited for included; seconds.
double process_tree_seconds(int pid);
