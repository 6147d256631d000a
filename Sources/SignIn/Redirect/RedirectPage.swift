// SPDX-License-Identifier: Apache-2.0

import CountersignHTTP1

/// The pages that the redirect listener shows. They contain no script, no link and nothing of the request.
enum RedirectPage: CaseIterable, Equatable {
    case signedIn
    case failed

    var path: String {
        switch self {
        case .signedIn: "/signed-in"
        case .failed: "/not-signed-in"
        }
    }

    private var text: String {
        switch self {
        case .signedIn: "The sign-in is complete. You can close this window."
        case .failed: "The sign-in has failed. The terminal shows the reason. You can close this window."
        }
    }

    private static let fields = [
        ("Content-Type", "text/html; charset=utf-8"), ("Cache-Control", "no-store"),
        ("Content-Security-Policy", "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"),
        ("Referrer-Policy", "no-referrer"), ("X-Content-Type-Options", "nosniff"),
    ]

    /// The page itself.
    var response: [UInt8] { Self.response(200, text) }

    /// Sends the browser to the page, so that its window does not show the authorization response. The browser may
    /// still record that URL, but its code is used up by then, and useless without the PKCE verifier.
    var redirect: [UInt8] {
        GeneratedResponse(status: 303, fields: [("Location", path)] + Self.fields).serialized()
    }

    /// A request that is not the authorization response of this sign-in.
    static func refusal(_ status: Int) -> [UInt8] {
        response(status, status == 404 ? "There is no such page." : "This request does not belong to the sign-in.")
    }

    private static func response(_ status: Int, _ text: String) -> [UInt8] {
        let html = """
            <!doctype html><html lang="en"><meta charset="utf-8"><title>Countersign</title>
            <p>\(text)</p></html>

            """
        return GeneratedResponse(status: status, fields: fields, body: Array(html.utf8)).serialized()
    }
}
