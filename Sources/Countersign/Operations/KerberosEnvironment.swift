// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials

/// The environment variables that select a process's Kerberos tickets, keys and configuration. Two processes of one
/// user with equal values use the same ones.
///
/// Does not compare the content of the files, nor a cache in the keyring of a session.
package struct KerberosEnvironment: Equatable, Sendable, Codable {
    private static let names = ["KRB5CCNAME", "KRB5_CONFIG", "KRB5_KTNAME", "KRB5_CLIENT_KTNAME"]

    /// Relative file names are preceded by the folder to which they are relative and a space.
    private let variables: [String: String]

    /// `folder` is the working folder.
    package init(_ environment: [String: String], folder: String) {
        variables = environment.filter { Self.names.contains($0.key) }.mapValues { value in
            Self.isAbsolute(value) ? value : "\(folder) \(value)"
        }
    }

    package static var ofThisProcess: KerberosEnvironment {
        KerberosEnvironment(
            ProcessInfo.processInfo.environment, folder: FileManager.default.currentDirectoryPath)
    }

    /// The names of the variables whose values differ, in a fixed order.
    package func differences(from other: KerberosEnvironment) -> [String] {
        Self.names.filter { variables[$0] != other.variables[$0] }
    }

    /// Whether a list of paths, or a cache or keytab `TYPE:NAME`, has the same meaning in every folder.
    private static func isAbsolute(_ value: String) -> Bool {
        let parts = value.split(separator: ":", omittingEmptySubsequences: false)
        guard let first = parts.first else { return true }
        if parts.count > 1, !first.isEmpty, first.allSatisfy({ $0.isASCII && $0.isLetter }) {
            guard ["FILE", "WRFILE", "DIR"].contains(first) else { return true }
            // `DIR::PATH` names one cache of the collection.
            let path = parts.dropFirst().first { !$0.isEmpty }
            return path?.hasPrefix("/") == true
        }
        return parts.allSatisfy { $0.hasPrefix("/") }
    }
}
