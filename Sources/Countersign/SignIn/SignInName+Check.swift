// SPDX-License-Identifier: Apache-2.0

import CountersignHome
package import CountersignSignIn

extension SignInName {
    /// Throws `configuration` unless `name` can name a sign-in.
    package static func check(_ name: String) throws {
        guard let fault = fault(of: name) else { return }
        throw CountersignError(
            .configuration, "the name \(name.debugDescription) of the sign-in \(fault)",
            hint: "choose another name with --name")
    }
}
