// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignTestOrigin
import NIOCore
import NIOPosix
import Testing

@testable import CountersignUpstream

/// Connections while the network changes. The addresses are those of an imaginary machine.
@Suite struct OpenConnectionsTests {
    private static let origin = Origin(scheme: .https, host: "www.corp.invalid", port: 443)
    private let loop = MultiThreadedEventLoopGroup.singleton.next()

    /// Finds the paths when the test says so.
    private final class Paths: PathSource {
        var waiting: [(Result<[ConnectionPath], UpstreamError>) -> Void] = []

        func findPaths(
            to origin: Origin, _ terms: ConnectionTerms,
            completion: @escaping (Result<[ConnectionPath], UpstreamError>) -> Void
        ) {
            waiting.append(completion)
        }
    }

    @Test func aRouteThatIsBeingFoundDuringAChangeIsFoundAgain() async throws {
        let (first, second) = try await loop.submit { [loop] in
            let paths = Paths()
            let connector = UpstreamConnector(loop: loop, paths: paths)
            let attempt = connector.tunnel(to: Self.origin) { _ in }
            let first = paths.waiting.count
            connector.open.networkChanged(ownAddresses: ["192.0.2.1"])
            paths.waiting[0](.success([ConnectionPath(host: "127.0.0.1", port: 9, mayBeLocal: false)]))
            defer { attempt.cancel() }
            return (first, paths.waiting.count)
        }.get()
        #expect(first == 1 && second == 2)
    }

    @Test func onlyAConnectionFromAnAddressThatIsGoneIsClosed() async throws {
        let server = try StatusServer { _ in .silence }
        let port = UInt16(server.port)
        let (connector, opened) = try await loop.submit { [loop] in
            let paths = Paths()
            let connector = UpstreamConnector(loop: loop, paths: paths)
            let opened = loop.makePromise(of: (any Channel).self)
            connector.tunnel(to: Self.origin) { result in
                switch result {
                case .success(let tunnel): opened.succeed(tunnel.channel)
                case .failure(let error): opened.fail(error)
                }
            }
            paths.waiting[0](.success([ConnectionPath(host: "127.0.0.1", port: port, mayBeLocal: false)]))
            return (NIOLoopBound(connector, eventLoop: loop), opened.futureResult)
        }.get()
        let channel = try await opened.get()
        let changes: [(Set<String>?, Bool)] = [(nil, true), (["127.0.0.1"], true), (["192.0.2.1"], false)]
        for (addresses, isOpen) in changes {
            try await loop.submit { connector.value.open.networkChanged(ownAddresses: addresses) }.get()
            #expect(channel.isActive == isOpen, "\(addresses?.first ?? "unknown")")
        }
    }
}
