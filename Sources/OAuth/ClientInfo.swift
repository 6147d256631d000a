// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignJSON

/// `client_info`: the account in Microsoft's directory to which a token belongs, as base64url of a JSON object. It is
/// asked for with the parameter `client_info=1`.
package struct ClientInfo: Sendable, Hashable {
    /// The account.
    package let uid: String
    /// The tenant.
    package let utid: String

    package init(uid: String, utid: String) {
        self.uid = uid
        self.utid = utid
    }

    /// Nil if the text is something else.
    package init?(_ text: String) {
        guard text.utf8.count <= 4096, let bytes = Base64URL.decode(text), let value = try? JSONParser.parse(bytes),
            case .string(let uid)? = value["uid"]?.content, case .string(let utid)? = value["utid"]?.content,
            Self.isIdentifier(uid), Self.isIdentifier(utid)
        else { return nil }
        self.init(uid: uid, utid: utid)
    }

    /// `homeAccountId`: `uid.utid`.
    package var homeAccountIdentifier: String { "\(uid).\(utid)" }

    /// The account in its tenant: the part of a `homeAccountId` before the dot, or all of it without a dot.
    package static func accountIdentifier(of homeAccount: String) -> String {
        String(homeAccount.prefix { $0 != "." })
    }

    private static func isIdentifier(_ text: String) -> Bool {
        (1...200).contains(text.utf8.count) && text.utf8.allSatisfy { (0x21...0x7E).contains($0) }
    }
}
