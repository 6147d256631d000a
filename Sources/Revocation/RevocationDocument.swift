// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignCryptography
import Synchronization

/// The identity of a document: its location, the request for it, and the addresses from which it may come.
package struct DocumentName: Hashable {
    package let target: FetchTarget
    /// The OCSP request in DER; nil for a list.
    let request: [UInt8]?
    /// Whether the document may come from this machine or a private network.
    let mayBeLocal: Bool

    package init(_ point: RevocationPoint, _ question: RevocationQuestion) throws(FetchFault) {
        target = try FetchTarget(url: point.url)
        mayBeLocal = question.isBelowOwnAnchor
        switch point {
        case .list: request = nil
        case .responder:
            do throws(CertificateError) {
                request = try OCSPRequest.make(for: question.certificate, issuedBy: question.issuer)
            } catch {
                throw .notAsked(error.detail)
            }
        }
    }

    /// 64 hexadecimal digits.
    var fileName: String { Hex.encode(Digest.sha256.hash(Array(target.url.utf8) + [0] + (request ?? []))) }
}

/// An OCSP response or a revocation list, as fetched.
package final class RevocationDocument: Sendable {
    private enum Content: Sendable {
        case response
        case list(RevocationList)
    }

    let bytes: [UInt8]
    /// Seconds since 1970.
    let fetchedAt: Int64
    private let content: Content
    private let isStored: Atomic<Bool>

    private init(_ bytes: [UInt8], _ content: Content, fetchedAt: Int64, isStored: Bool) {
        self.bytes = bytes
        self.content = content
        self.fetchedAt = fetchedAt
        self.isStored = Atomic(isStored)
    }

    /// A list in PEM is accepted, because some servers send one, although RFC 5280 §4.2.1.13 requires DER.
    private static func content(_ bytes: [UInt8], as name: DocumentName) throws(CertificateError) -> Content {
        guard name.request == nil else { return .response }
        guard let list = try RevocationList.read(bytes).first else {
            throw CertificateError(.malformed, "not a revocation list")
        }
        return .list(list)
    }

    /// The document in the body of a response.
    static func received(
        _ bytes: [UInt8], as name: DocumentName, at time: Int64
    ) -> Result<RevocationDocument, FetchFault> {
        do throws(CertificateError) {
            let content = try content(bytes, as: name)
            return .success(RevocationDocument(bytes, content, fetchedAt: time, isStored: false))
        } catch {
            return .failure(.malformed(error.detail))
        }
    }

    package func judge(_ question: RevocationQuestion, at time: Int64) -> StatusJudgement {
        switch content {
        case .response:
            OCSPResponse.judge(bytes, about: question.certificate, by: question.issuer, at: time)
        case .list(let list):
            list.status(of: question.certificate, issuedBy: question.issuer, at: time)
        }
    }

    func lastSecondOfUse(isDated: Bool) -> Int64 {
        fetchedAt + (isDated ? RevocationService.longestUseSeconds : RevocationService.undatedUseSeconds)
    }

    var isList: Bool { if case .list = content { true } else { false } }

    // MARK: Storage

    /// True once, for a document that was not read from the storage.
    func mustBeStored() -> Bool { !isStored.exchange(true, ordering: .relaxed) }

    /// `countersign-status 1 SECONDS URL` and a line break, then the document.
    package func stored(as name: DocumentName) -> [UInt8] {
        Array("\(Self.heading) \(fetchedAt) \(name.target.url)\n".utf8) + bytes
    }

    private static let heading = "countersign-status 1"

    /// Nil if the bytes are not a result of ``stored(as:)`` for the same document, which is then fetched again. The
    /// signature is verified as after fetching.
    package init?(stored: [UInt8], as name: DocumentName) {
        guard let end = stored.firstIndex(of: UInt8(ascii: "\n")) else { return nil }
        let words = stored[..<end].split(separator: UInt8(ascii: " ")).map { String(decoding: $0, as: UTF8.self) }
        guard words.count == 4, words[0...1].joined(separator: " ") == Self.heading, let time = Int64(words[2]),
            time >= 0, time <= Int64.max / 2, words[3] == name.target.url
        else { return nil }
        bytes = Array(stored[(end + 1)...])
        guard let content = try? Self.content(bytes, as: name) else { return nil }
        self.content = content
        fetchedAt = time
        isStored = Atomic(true)
    }
}

/// The lists that were used last, so that many certificates of one issuer do not have theirs parsed again and again.
/// Large ones are only stored: parsed, they take several times their size.
struct RecentLists {
    static let limit = 16
    static let largestBytes = 256 << 10

    private var lists: [(target: FetchTarget, document: RevocationDocument)] = []

    subscript(target: FetchTarget) -> RevocationDocument? { lists.first { $0.target == target }?.document }

    mutating func add(_ document: RevocationDocument, for target: FetchTarget) {
        guard document.isList, document.bytes.count <= Self.largestBytes else { return }
        lists.removeAll { $0.target == target }
        lists.append((target, document))
        if lists.count > Self.limit { lists.removeFirst() }
    }
}
