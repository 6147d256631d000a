// SPDX-License-Identifier: Apache-2.0

/// Fields that say which page causes a request, and which pages may read a response.
extension FieldLines {
    /// Whether a browser, or a client that acts like one, may say here what causes the request: with Fetch Metadata,
    /// `Origin`, `Referer`, or the name of a browser in `User-Agent`. Compares only the length of each name, so that
    /// the requests of other clients need no search for the fields.
    package var mayNameCause: Bool {
        let span = bytes.span.bytes
        for line in lines where line.known == .other {
            let name = Range<Int>(line.name)
            switch name.count {
            case 6: if span.matches("origin", at: name) { return true }
            case 7: if span.matches("referer", at: name) { return true }
            case 14:
                let says = span.matches("sec-fetch-site", at: name) || span.matches("sec-fetch-mode", at: name)
                if says { return true }
            case 10:
                // The value first: that of another client differs in its first letter.
                let value = Range<Int>(line.value).prefix("mozilla/".utf8.count)
                if span.matches("mozilla/", at: value), span.matches("user-agent", at: name) { return true }
            default: continue
            }
        }
        return false
    }

    private static var allowOrigin: String { "access-control-allow-origin" }
    private static var allowCredentials: String { "access-control-allow-credentials" }

    /// Whether the line is one of Access-Control-Allow-Origin (Fetch §3.3.3).
    func isAllowOrigin(_ line: FieldLine) -> Bool {
        line.known == .other && bytes.span.bytes.matches(Self.allowOrigin, at: Range(line.name))
    }

    /// Whether a page of `origin` may read the response to a request with credentials (Fetch §4.10): the fields name
    /// exactly this origin, and permit credentials.
    package func allowsCredentials(to origin: String) -> Bool {
        values(named: Self.allowOrigin) == [origin] && values(named: Self.allowCredentials) == ["true"]
    }
}
