// SPDX-License-Identifier: Apache-2.0

import Foundation
import CountersignTestOrigin

/// The origins of the rows, made once for a test run.
final class Origins: Sendable {
    private static let made = Result { try Origins() }

    static var shared: Origins { get throws { try made.get() } }

    static let fileText = "a file behind NTLM\n"

    let nginx: NginxOrigin
    let apache: ApacheOrigin
    let ntlm: ChallengingOrigin
    let ntlm384: ChallengingOrigin
    let negotiate: ChallengingOrigin
    let ntlmHTTP: ChallengingOrigin

    private init() throws {
        nginx = try NginxOrigin()
        apache = try ApacheOrigin(user: Countersign.user, password: Countersign.password)
        ntlm = try .acme(.ntlm)
        ntlm384 = try .acme(.ntlm, certificate: "server-sha384")
        negotiate = try .acme(.negotiate)
        ntlmHTTP = try .acme(.ntlm, certificate: nil)
        for origin in [ntlm, ntlm384, negotiate, ntlmHTTP] {
            try Data(Self.fileText.utf8).write(to: URL(fileURLWithPath: "\(origin.root)/file"))
        }
    }

    /// What was asked of any of them with this query.
    func logged(query: String) -> [LoggedRequest] {
        [nginx.log, apache.log, ntlm.log, ntlm384.log, negotiate.log, ntlmHTTP.log]
            .flatMap(\.requests).filter { $0.path?.hasSuffix("?\(query)") == true }
    }
}

extension ChallengingOrigin {
    /// An origin where ACME\jdoe may log in; with Basic, jdoe.
    static func acme(_ mode: Mode, certificate: String? = "server") throws -> ChallengingOrigin {
        try ChallengingOrigin(
            mode, certificate: certificate, user: mode == .basic ? Countersign.user : "ACME\\\(Countersign.user)",
            password: Countersign.password)
    }
}

/// One user with a password and two certificates whose list has all the rows' sites, and their proxy.
final class Setting: Sendable {
    private static let made = Result { try Setting() }

    static var shared: Setting { get throws { try made.get() } }

    let origins: Origins
    let user: Countersign
    let proxy: RunningProxy

    private init() throws {
        origins = try Origins.shared
        user = try Countersign()
        try user.enroll()
        try user.importIdentity("laptop")
        try user.importIdentity("badge")
        for row in Row.all {
            guard let options = row.options else { continue }
            try user.allow("\(row.siteURL(origins)) \(options)")
        }
        proxy = try user.serve()
    }
}
