// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A clock that no one sets, for intervals. It does not count while the machine sleeps.
package enum MonotonicClock {
    /// Whole seconds since an arbitrary time; may be up to 10 ms late.
    package static func seconds() -> UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC_COARSE, &time)
        return UInt64(time.tv_sec)
    }
}
