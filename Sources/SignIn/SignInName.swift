// SPDX-License-Identifier: Apache-2.0

import CountersignOAuth
import CountersignSitePolicy

/// The names of sign-ins. The access token of a sign-in is a credential of its name, so the name decides which sites
/// get the token.
package enum SignInName {
    /// Why `name` cannot name a sign-in, as the end of a sentence that begins with the name; nil if it can. A name that
    /// sites use by default would send the token to sites that were not chosen for it.
    package static func fault(of name: String) -> String? {
        guard SiteRule.isStoredName(name), name.utf8.first.map(isAlphanumeric) == true else {
            return "must have 1 to 64 characters from A-Z a-z 0-9 . _ -, the first a letter or digit"
        }
        if name == SiteRule.defaultCredential {
            return "must not be \"\(name)\", the credential of every site without credential="
        }
        if OriginCredentialName.isOne(name) {
            return "must not begin with http_ or https_, as the credentials of one site alone do"
        }
        return nil
    }

    /// The name of a sign-in that neither its profile nor the person names: the issuer's host, `login.corp.example`,
    /// shortened at the front if it is too long.
    package static func implied(by issuer: Issuer) -> String { implied(byHost: issuer.url.origin.host) }

    package static func implied(byHost host: String) -> String {
        let text = host.utf8.map { byte in
            isAlphanumeric(byte) || byte == UInt8(ascii: ".") || byte == UInt8(ascii: "-") ? byte : UInt8(ascii: "-")
        }
        return String(decoding: text.suffix(64).drop { !isAlphanumeric($0) }, as: UTF8.self)
    }

    private static func isAlphanumeric(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: false
        }
    }
}
