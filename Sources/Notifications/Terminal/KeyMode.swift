// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A terminal that returns each key at once and without echo, until ``leave()``. Control-C still sends its signal.
/// Control-Z does not, and arrives as a key: the mode has to be left before the process stops.
struct KeyMode {
    private let descriptor: Int32
    private var before: termios?

    init(_ descriptor: Int32) { self.descriptor = descriptor }

    var isOn: Bool { before != nil }

    /// Discards what was typed before. The process must be in the foreground, or the terminal stops it.
    mutating func enter() {
        var settings = termios()
        guard before == nil, tcgetattr(descriptor, &settings) == 0 else { return }
        before = settings
        settings.c_lflag &= ~tcflag_t(ECHO | ICANON)
        withUnsafeMutableBytes(of: &settings.c_cc) { keys in
            keys[Int(VSUSP)] = 0  // _POSIX_VDISABLE
            keys[Int(VMIN)] = 1
            keys[Int(VTIME)] = 0
        }
        tcsetattr(descriptor, TCSAFLUSH, &settings)
    }

    /// `isOurs`: the process is in the foreground. Otherwise, the shell has set the mode for another program.
    mutating func leave(isOurs: Bool) {
        guard var settings = before else { return }
        before = nil
        if isOurs { tcsetattr(descriptor, TCSAFLUSH, &settings) }
    }
}
