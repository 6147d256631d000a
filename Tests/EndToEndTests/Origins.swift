// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation

/// The origins in the table, started once per test run.
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
            for name in ["file", "page.html"] {
                try Data(Self.fileText.utf8).write(to: URL(fileURLWithPath: "\(origin.root)/\(name)"))
            }
        }
    }

    /// The requests with this query to any of the origins. A server writes its log after the response, so the last one
    /// may be missing.
    func logged(query: String) -> [LoggedRequest] {
        [nginx.log, apache.log, ntlm.log, ntlm384.log, negotiate.log, ntlmHTTP.log]
            .flatMap(\.requests).filter { $0.path?.hasSuffix("?\(query)") == true }
    }

    /// The same once one of them is `wanted`; empty if none is in time.
    func logged(query: String, where wanted: (LoggedRequest) -> Bool) -> [LoggedRequest] {
        poll {
            let all = logged(query: query)
            return all.contains(where: wanted) ? all : nil
        } ?? []
    }
}

extension ChallengingOrigin {
    /// An origin that accepts ACME\jdoe, or jdoe with Basic.
    static func acme(_ mode: Mode, certificate: String? = "server") throws -> ChallengingOrigin {
        try ChallengingOrigin(
            mode, certificate: certificate, user: mode == .basic ? Countersign.user : "ACME\\\(Countersign.user)",
            password: Countersign.password)
    }
}
