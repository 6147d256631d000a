// SPDX-License-Identifier: Apache-2.0

import WebViewProtocol

/// Why the web view cannot start on this machine, and the remedy.
struct StartFailure: Error {
    let code: FailureCode
    /// Lower case, without a full stop.
    let sentence: String
    let remedy: String
}
