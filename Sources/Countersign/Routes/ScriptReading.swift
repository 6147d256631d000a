// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCCurl
import CountersignCryptography
import CountersignEnrollment
package import CountersignHome
package import CountersignParents
package import CountersignRouting
import Glibc

/// Reads the proxy auto-configuration scripts that `--parent` names, for a home: from a file, or from a web server with
/// libcurl. A download never goes through a parent, because the script decides about parents.
package struct ScriptReading: Sendable {
    private let home: Home
    /// The machine's own domain, for `wpad`; nil if it has none.
    private let domain: @Sendable () -> String?

    private static let limitBytes = 1 << 20
    private static let folder = "routes"

    package init(home: Home, domain: @escaping @Sendable () -> String? = ScriptReading.ownDomain) {
        self.home = home
        self.domain = domain
    }

    /// Blocks.
    package func read(_ source: ScriptSource) -> Result<ScriptContents, ScriptError> {
        switch source {
        case .file(let path):
            do throws(CountersignError) {
                let bytes = try HomeFile(path: path).read(upTo: Self.limitBytes)
                return .success(ScriptContents(bytes, lifetime: ScriptContents.file))
            } catch {
                return .failure(ScriptError(error.detail))
            }
        case .url(let url): return download(url)
        case .wpad:
            let urls = wpadURLs()
            guard !urls.isEmpty else {
                return .failure(ScriptError("this machine has no domain below which a host wpad may be"))
            }
            var reasons: [String] = []
            for url in urls {
                switch download(url) {
                case .success(let contents): return .success(contents)
                case .failure(let error): reasons.append(error.reason)
                }
            }
            return .failure(ScriptError(reasons.joined(separator: "; ")))
        }
    }

    // MARK: The last good copies

    /// In the home's folder `routes` (mode 0700, files 0600). If it cannot be written, nothing is kept.
    package var storage: ScriptStorage {
        ScriptStorage(
            read: { source in file(source).flatMap { try? $0.readIfThere(upTo: Self.limitBytes) } },
            write: { source, bytes in
                guard let file = file(source), (try? home.exists()) == true,
                    (try? HomeFile.makeFolder("\(home.path)/\(Self.folder)", mode: 0o700)) != nil
                else { return }
                try? file.replace(with: bytes, mode: 0o600, isDurable: false)
            })
    }

    /// Nil for a file, which is its own copy.
    private func file(_ source: ScriptSource) -> HomeFile? {
        if case .file = source { return nil }
        let name = Hex.encode(Array(Digest.sha256.hash(source.description.utf8).prefix(16)))
        return home.file("\(Self.folder)/\(name).pac")
    }

    // MARK: Download

    private func download(_ text: String) -> Result<ScriptContents, ScriptError> {
        do {
            let url = try AbsoluteURL(parsing: text)
            let anchors = try home.anchorFiles()
            var exchange = WebExchange(url.origin, target: url.path)
            exchange.responseBytes = Self.limitBytes
            exchange.isPublic = true
            exchange.acceptsCompression = true
            exchange.route = .direct
            exchange.fields.append(
                ("Accept", Secret(utf8: "application/x-ns-proxy-autoconfig, application/javascript, */*;q=0.5")))
            let request = exchange
            let response = try Blocking.run {
                try await request.run(
                    .implicit(additional: anchors.certificates, revocationLists: anchors.revocationLists),
                    now: { Int64(time(nil)) })
            }
            guard response.status == 200 else {
                let redirects = (300...399).contains(response.status) ? ", and redirects are not followed" : ""
                return .failure(ScriptError("\(text) was answered with status \(response.status)\(redirects)"))
            }
            let now = Int64(time(nil))
            return .success(
                ScriptContents(
                    response.body.withBytes { Array($0) }, contentType: response.field("content-type"),
                    lifetime: ScriptContents.lifetime(
                        cacheControl: response.field("cache-control"),
                        expires: response.field("expires").map { Self.seconds(of: $0) ?? 0 },
                        date: response.field("date").flatMap(Self.seconds) ?? now)))
        } catch {
            return .failure(ScriptError((error as? any DiagnosableError)?.detail ?? "\(error)"))
        }
    }

    private static func seconds(of date: String) -> Int64? {
        let seconds = csn_curl_getdate(date)
        return seconds < 0 ? nil : Int64(seconds)
    }

    // MARK: WPAD

    private func wpadURLs() -> [String] {
        guard let domain = domain(), let name = try? HostName(canonicalizing: domain, for: .forwarded)
        else { return [] }
        return WPADNames.urls(forDomain: name) { Home.publicSuffixes.isPublicSuffix($0) }
    }

    /// The labels after the first in the machine's full name, or the first search domain of the resolver.
    package static let ownDomain: @Sendable () -> String? = {
        var room = [CChar](repeating: 0, count: 256)
        if gethostname(&room, room.count - 1) == 0 {
            let name = String(decoding: room.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            if let dot = name.firstIndex(of: "."), name.index(after: dot) < name.endIndex {
                return String(name[name.index(after: dot)...])
            }
        }
        let text = (try? HomeFile(path: "/etc/resolv.conf").read(upTo: 64 << 10)) ?? []
        for line in String(decoding: text, as: UTF8.self).split(separator: "\n") {
            let words = line.split { $0 == " " || $0 == "\t" }
            if words.count > 1, words[0] == "search" || words[0] == "domain" { return String(words[1]) }
        }
        return nil
    }
}
