// SPDX-License-Identifier: Apache-2.0

import Glibc

extension Home {
    /// Whether no process of this home answers challenges.
    package var isPaused: Bool { access(pauseMark.path, F_OK) == 0 }

    /// Switches answering off or on for all processes of the home, including those that start later. Returns whether
    /// that changed anything.
    @discardableResult
    package func setPaused(_ paused: Bool) throws(CountersignError) -> Bool {
        guard paused != isPaused else { return false }
        if paused {
            try prepare()
            try pauseMark.replace(with: [])
        } else {
            try pauseMark.remove()
        }
        return true
    }
}
