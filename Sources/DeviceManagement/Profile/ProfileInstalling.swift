// SPDX-License-Identifier: Apache-2.0

/// Installs the configuration profiles that device management hands out during a sign-in.
package protocol ProfileInstalling: Sendable {
    /// Shows the profile to the person, asks for consent, and installs it completely or not at all. If its task is
    /// cancelled during the question, it ends at once, and throws.
    ///
    /// - Parameters:
    ///   - document: The profile as received: an XML property list, plain or in signed CMS. At most 1 MiB; unchecked.
    ///   - host: The host that has delivered it, with the port if it is not that of https.
    ///   - signIn: The name of the sign-in that the profile belongs to.
    /// - Returns: A sentence about the profile that was installed, for the person.
    /// - Throws: An error with the reason if nothing was installed, including a refusal by the person.
    func install(_ document: [UInt8], from host: String, for signIn: String) async throws -> String
}
