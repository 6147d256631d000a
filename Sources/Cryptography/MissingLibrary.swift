// SPDX-License-Identifier: Apache-2.0

/// A library that is loaded when it is needed first, and is not installed.
package struct MissingLibrary: Equatable, Sendable {
    package let name: String
    /// The Debian package that contains it.
    package let package: String

    package static let curl = MissingLibrary(name: "libcurl", package: "libcurl4")
    package static let javaScriptCore = MissingLibrary(
        name: "libjavascriptcoregtk-6.0", package: "libjavascriptcoregtk-6.0-1")
    package static let duktape = MissingLibrary(name: "libduktape", package: "libduktape207")
    package static let gssapi = MissingLibrary(name: "libgssapi_krb5.so.2", package: "libgssapi-krb5-2")

    package var detail: String { "\(name) cannot be loaded" }
    /// The remedy.
    package var hint: String { "install the package \(package)" }
}
