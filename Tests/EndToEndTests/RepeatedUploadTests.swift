// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// Challenged uploads arrive unchanged, each time, and no bytes follow them: between real sockets, in every length
/// around the limits of the memory and the spool.
@Suite(.waiting) struct RepeatedUploadTests {
    private static let token = "kanarie.upload"
    private static let limit = 1 << 20
    private static let edges = [0, 1, 65_535, 65_536, 65_537, limit - 1, limit, limit + 1]
    private static let middle = Array(stride(from: 1_050_000, through: 1_500_000, by: 50_000))
    private static let large = [2_000_000, 5_000_000, 20_000_000]

    private struct Group: Encodable {
        let proxy: Int
        let base: String
        let lengths: [Int]
        let repeats: Int
    }

    private struct Uploads: Decodable {
        /// The base of each upload's URL.
        let uploads: [String: String]
        let failures: [String]
    }

    private let user: Countersign

    init() throws {
        user = try Countersign()
        try user.enroll()
        try user.succeed("credential", "set", "api", "--token-stdin", input: Self.token)
    }

    private func origin(parents: [String] = [], realm: KerberosRealm? = nil) throws -> UploadOrigin {
        try UploadOrigin(
            user: Countersign.user, password: Countersign.password, token: Self.token, parents: parents, realm: realm)
    }

    /// Lists the origin's hosts, and returns the uploads to them. Large ones go to some of them.
    private func groups(
        _ origin: UploadOrigin, _ schemes: [String], repeats: Int
    ) throws -> [(base: String, lengths: [Int], repeats: Int)] {
        var groups: [(String, [Int], Int)] = []
        for scheme in schemes {
            for behaviour in UploadOrigin.Behaviour.allCases {
                // Bearer is answered over TLS only.
                for isTLS in scheme == "bearer" ? [true] : [false, true] {
                    let base = origin.base(scheme, behaviour, isTLS: isTLS)
                    let options = scheme == "ntlm" ? " domain=ACME" : scheme == "bearer" ? " credential=api" : ""
                    let plaintext = isTLS ? "" : " plaintext=yes"
                    try user.allow("\(base) answer=\(scheme) preempt=no\(plaintext)\(options)")
                    groups.append((base, Self.edges, 1))
                    groups.append((base, Self.middle, repeats))
                    groups.append((base, Array(Self.large.prefix(groups.count % 8 == 2 ? 3 : 1)), 1))
                }
            }
        }
        return groups
    }

    private func run(
        _ proxy: RunningProxy, _ groups: [(base: String, lengths: [Int], repeats: Int)]
    ) async throws -> Uploads {
        let plan = groups.map { Group(proxy: proxy.port, base: $0.base, lengths: $0.lengths, repeats: $0.repeats) }
        let anchors = try user.folder.write("anchors-\(proxy.port).pem", TextFile.bytes(proxy.anchor))
        let (input, folder) = (String(decoding: try JSONEncoder().encode(plan), as: UTF8.self), user.folder)
        let done = try await Command.detached {
            try Command.run(
                try Tool.python(), [Tool.client("upload.py"), anchors, "1"], input: input, in: folder, seconds: 1800)
        }
        guard done.status == 0 else { throw HarnessError("upload.py: \(done.said)") }
        let uploads = try JSONDecoder().decode(Uploads.self, from: Data(done.output.utf8))
        #expect(uploads.failures.isEmpty, "\(uploads.failures.count): \(uploads.failures.prefix(5))")
        return uploads
    }

    /// `eachIsChallenged`: no connection is authenticated for an upload by an earlier one.
    private func expectEqual(_ uploads: Uploads, at origin: UploadOrigin, eachIsChallenged: Bool = true) throws {
        let entries = try origin.entries()
        let extra = entries.compactMap(\.extra)
        #expect(extra.isEmpty, "\(extra.count) times something else arrived: \(extra.prefix(5))")
        let requests = Dictionary(grouping: entries.filter { $0.id != nil }, by: { $0.id ?? "" })
        var wrong: [String] = []
        for (id, base) in uploads.uploads {
            let sent = requests[id] ?? []
            let whole = sent.filter { $0.whole == true && $0.opens == false }
            let takesContent = UploadOrigin.Behaviour.allCases.contains {
                $0.takesContentFirst && base.contains("-\($0.rawValue).")
            }
            let isRight =
                sent.allSatisfy { $0.equal == true } && whole.filter { $0.status == 200 }.count == 1
                && sent.filter { $0.status == 200 }.count == 1
                && (!takesContent || whole.count == 2 || !eachIsChallenged && whole.count == 1)
            if !isRight { wrong.append("\(base) \(sent)") }
        }
        #expect(wrong.isEmpty, "\(wrong.count) of \(uploads.uploads.count): \(wrong.prefix(3))\(origin.errors)")
    }

    /// Of the middle lengths, one upload in each framing to each host; three if `COUNTERSIGN_LONG_TESTS` is set.
    private static let repeats = ProcessInfo.processInfo.environment["COUNTERSIGN_LONG_TESTS"] == nil ? 1 : 3

    @Test func eachTransmissionIsTheUpload() async throws {
        let origin = try origin()
        let schemes = ["basic", "digest", "ntlm", "bearer"]
        let groups = try groups(origin, schemes, repeats: Self.repeats)
        let proxy = try user.serve("--spool", "2G")
        let uploads = try await run(proxy, groups)
        #expect(uploads.uploads.count >= (Self.repeats == 1 ? 1300 : 2700))
        try expectEqual(uploads, at: origin)
    }

    @Test(arguments: ["basic", "digest", "ntlm"]) func aParentReceivesTheUploadEachTime(_ scheme: String) async throws {
        let origin = try origin(parents: [scheme])
        let domain = scheme == "ntlm" ? " domain=ACME" : ""
        try user.allow("proxy://127.0.0.1:\(origin.parent(0)) preempt=no plaintext=yes\(domain)")
        let groups = UploadOrigin.Behaviour.allCases.map { behaviour in
            (UploadOrigin.base(behind: behaviour), Self.edges + Self.middle + Self.large.prefix(1), 1)
        }
        let proxy = try user.serve("--parent", "http://127.0.0.1:\(origin.parent(0))")
        // NTLM's connections to a parent serve one client after another.
        try expectEqual(await run(proxy, groups), at: origin, eachIsChallenged: scheme != "ntlm")
    }

    @Test func aServiceOfKerberosReceivesTheUploadEachTime() async throws {
        let hosts = UploadOrigin.Behaviour.allCases.map { "HTTP/negotiate-\($0.rawValue).test.localhost" }
        let realm = try KerberosRealm(services: hosts)
        let origin = try origin(realm: realm)
        try realm.kinit(cache: "tickets")
        let groups = try groups(origin, ["negotiate"], repeats: 1)
        let proxy = try user.serve(environment: realm.environment(cache: "tickets"))
        try expectEqual(await run(proxy, groups), at: origin)
    }
}
