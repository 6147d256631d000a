// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignHome
import CountersignTestOrigin
import Foundation
import Synchronization
import Testing

@testable import Countersign

/// Operations on the control socket, without a vault.
@Suite struct OperationTests {
    private let home: Home
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder("operations")
        home = Home(path: folder.file("home"))
    }

    /// A server that performs every operation by returning `reply`.
    private func server(
        replying reply: any Encodable & Sendable, seen: @escaping @Sendable (any VaultOperation) -> Void = { _ in }
    ) throws -> (socket: ControlSocket, client: VaultServer) {
        let socket = try ControlSocket(
            home: home,
            service: ControlSocket.Service(
                answer: { _, _ in
                    var reply = ControlReply(isLocked: false)
                    reply.operations = OperationTable.names
                    return reply
                },
                perform: { operation, _, _ in
                    seen(operation)
                    return reply
                }))
        return (socket, try #require(VaultServer(of: home)))
    }

    @Test func eachNameIsThatOfOneOperation() {
        #expect(Set(OperationTable.names).count == OperationTable.types.count)
        for type in OperationTable.types { #expect(OperationTable.type(named: type.name) == type) }
    }

    @Test func theServerGetsTheOperationAndTheCommandItsResult() async throws {
        let names = StoredNames(credentials: ["work"], identities: ["laptop"])
        let operations = Mutex<[String]>([])
        let (socket, client) = try server(replying: OperationReply.finished(names)) { operation in
            operations.withLock { $0.append("\(operation)") }
        }
        let found = try #require(try client.perform(ListNames()))
        #expect(found.credentials == ["work"] && found.identities == ["laptop"])
        _ = try? client.perform(RemoveTrustExceptions(host: "a.example", port: 8443))
        #expect(
            operations.withLock { $0 } == [
                "\(ListNames())", "\(RemoveTrustExceptions(host: "a.example", port: 8443))",
            ])
        await socket.stop()
    }

    @Test func aResultThatIsNothingIsNotAServerThatHasDoneNothing() async throws {
        let (socket, client) = try server(replying: OperationReply<ListedIdentity?>.finished(nil))
        let found = try client.perform(ShowIdentity(name: "laptop"))
        #expect(found == .some(.none))
        await socket.stop()
        let (other, declining) = try server(replying: OperationReply<Done>.unavailable(reason: "locked"))
        #expect(try declining.perform(ShowIdentity(name: "laptop")) == .none)
        await other.stop()
    }

    @Test func theResultOfAnotherVersionIsAnError() async throws {
        let (socket, client) = try server(replying: OperationReply.finished(["names": ["work"]]))
        let error = #expect(throws: CountersignError.self) { try client.perform(ListCredentials()) }
        #expect(error?.hint == "restart `countersign serve`")
        await socket.stop()
    }

    /// The log of the server says nothing then.
    @Test func whatChangesNothingSaysSo() {
        let nothing = RemovedRecords(count: 0, known: ["work"])
        #expect(RemoveCredential(name: "api").change(nothing) == nil)
        #expect(RemoveCredential(name: "api").change(RemovedRecords(count: 1, known: [])) != nil)
        #expect(RemoveIdentity(name: "api").change(nothing) == nil)
        #expect(RemoveTrustExceptions(host: "a.example", port: 1).change(nothing) == nil)
        #expect(ClearSessions(group: nil, host: nil).change(nothing) == nil)
        #expect(RemoveSignIn(name: "work").change(.unknown(known: [])) == nil)
        #expect(WipeSignIn(name: "work").change(.unknown(known: [])) == nil)
        #expect(RemoveProfile(identifier: "a").change(.unknown(known: [])) == nil)
        let options = IdentityRenewal.Options()
        #expect(RefreshIdentity(name: "laptop", options: options).change(.pending(until: 1)) == nil)
    }

    @Test func onlyATestOfThePolicyIsLong() {
        #expect(!ReportPolicy(.explain(url: "a.example")).isLong)
        #expect(ReportPolicy(.test(url: "a.example")).isLong)
    }
}
