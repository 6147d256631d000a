// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// Why a proxy auto-configuration script has no result. Text of the script is printable and shortened.
package struct PACError: CodedError {
    package enum Code: Equatable, Sendable, CaseIterable {
        /// No engine is installed.
        case noLibrary
        /// The worker process cannot be started, or ended before it was ready.
        case cannotStart
        /// The system does not let the worker give up its rights.
        case cannotConfine
        /// The script is longer than ``PACLimits/scriptBytes``, or not UTF-8.
        case unreadable
        /// The script does not match the grammar of JavaScript.
        case syntax
        /// The script has no function `FindProxyForURL`.
        case noFunction
        /// The script threw an error.
        case thrown
        /// The function's result is not text, or is too long.
        case wrongResult
        /// One call used more processor time than ``PACLimits/callTime``, or the worker did not reply at all.
        case timedOut
        /// The script used more memory than ``PACLimits/memoryBytes`` or ``PACLimits/addressSpaceBytes``.
        case outOfMemory
        /// The worker process ended, or did something that it may not.
        case crashed
    }

    package let code: Code
    /// Without the name of the script, which the caller knows.
    package let detail: String
    package let hint: String?

    package init(_ code: Code, _ detail: String, hint: String? = nil) {
        self.code = code
        self.detail = detail
        self.hint = hint
    }

    static let noLibrary = PACError(
        .noLibrary, "scripts are run by JavaScriptCore or libduktape, and neither is installed",
        hint: "\(MissingLibrary.javaScriptCore.hint) or \(MissingLibrary.duktape.package)")
    static let notAReply = PACError(.crashed, "the script's process sent something else than a reply")
    static let timedOut = PACError(
        .timedOut, "the script used more than \(PACLimits.callTime) of processor time for one request")
    static let outOfMemory = PACError(
        .outOfMemory, "the script used more memory than it may, at least \(PACLimits.memoryBytes >> 20) MiB")
}

/// The resources for a script.
package enum PACLimits {
    /// The longest script, in bytes.
    package static let scriptBytes = 1 << 20
    /// Of the engine, the script and its data with libduktape, which counts its allocations.
    package static let memoryBytes = 16 << 20
    /// The processor time of one call, and of running the script once when it is loaded.
    package static let callTime = Duration.milliseconds(100)
    /// The longest URL, result, or error text, in bytes.
    package static let textBytes = 8192
    /// The hosts that a script may ask for in one call. Those beyond have no address.
    package static let lookUps = 16
    /// The permitted growth of the worker's address space: the engine's memory, and malloc's loss to fragmentation.
    /// JavaScriptCore has no other limit.
    static let addressSpaceBytes = 64 << 20
    /// How long the worker may take for one call on a busy machine, and for its start.
    static let wallTime = Duration.seconds(5)
}
