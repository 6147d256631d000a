// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc

/// A command that `countersign vault` sends to a running server: one JSON object per line, each answered by one.
package enum ControlRequest: Equatable, Sendable {
    case status
    case lock
    /// The passphrase's bytes, if the vault requires one. Encoded in Base64.
    case unlock(passphrase: [UInt8]?)
}

/// The reply of a running server.
package struct ControlReply: Equatable, Sendable, Codable {
    package var isLocked: Bool
    /// Why the command failed; the vault is unchanged then.
    package var error: String?
    package var hint: String?
    /// Whether ``error`` is that the passphrase is wrong; nil otherwise.
    package var isWrongPassphrase: Bool?
    package var processIdentifier: Int32
    /// The addresses on which the server accepts clients, as `host:port` or `unix:PATH`. Servers of earlier versions do
    /// not report them.
    package var addresses: [String]?
    /// The absolute path of the file with the token that clients must send, if they must.
    package var clientTokenFile: String?

    package init(
        isLocked: Bool, error: String? = nil, hint: String? = nil, processIdentifier: Int32 = getpid(),
        addresses: [String]? = nil, clientTokenFile: String? = nil
    ) {
        self.isLocked = isLocked
        self.addresses = addresses
        self.clientTokenFile = clientTokenFile
        self.error = error
        self.hint = hint
        self.processIdentifier = processIdentifier
    }

    private enum CodingKeys: String, CodingKey {
        case isLocked = "locked"
        case error, hint, addresses, clientTokenFile
        case isWrongPassphrase = "wrongPassphrase"
        case processIdentifier = "pid"
    }
}

extension ControlRequest: Codable {
    private enum CodingKeys: String, CodingKey { case command, passphrase }
    private enum Command: String, Codable { case status, lock, unlock }

    package init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        switch try container.decode(Command.self, forKey: .command) {
        case .status: self = .status
        case .lock: self = .lock
        case .unlock:
            self = .unlock(passphrase: try container.decodeIfPresent(Data.self, forKey: .passphrase).map(Array.init))
        }
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        switch self {
        case .status: try container.encode(Command.status, forKey: .command)
        case .lock: try container.encode(Command.lock, forKey: .command)
        case .unlock(let passphrase):
            try container.encode(Command.unlock, forKey: .command)
            try container.encodeIfPresent(passphrase.map { Data($0) }, forKey: .passphrase)
        }
    }
}
