// SPDX-License-Identifier: Apache-2.0

import Synchronization
import CountersignTestOrigin
import Testing

@testable import Countersign

@Suite(.waiting) struct LibraryHandlingTests {
    private static let site = "https://git.corp.example\n"

    // MARK: Changes to the home

    @Test func aChangedListIsInEffectWithTheNextCall() throws {
        let home = try LibraryHome(Self.site)
        let controller = try home.controller()
        #expect(try controller.canHandle(.git(.basic)))
        try home.write(sites: "https://other.corp.example\n")
        #expect(throws: ChallengeError.self) { try controller.canHandle(.git(.basic)) }
    }

    @Test func aFaultyListLeavesThePreviousOneInEffect() throws {
        let home = try LibraryHome(Self.site)
        let controller = try home.controller()
        try home.write(sites: "https://git.corp.example awnser=basic\n")
        #expect(try controller.canHandle(.git(.basic)))
    }

    @Test func aRejectedCredentialIsUsedAgainOnceItHasChanged() async throws {
        let home = try LibraryHome(Self.site)
        let controller = try home.controller()
        let space = ProtectionSpace.git(.basic)
        let events = controller.events
        let given = await controller.handle(AuthenticationChallenge(protectionSpace: space))
        let after = await controller.handle(AuthenticationChallenge(protectionSpace: space, previousFailureCount: 1))
        let again = await controller.handle(AuthenticationChallenge(protectionSpace: space))
        #expect([given.0, after.0, again.0] == [.useCredential, .performDefaultHandling, .performDefaultHandling])
        try home.enroll(password: "another")
        let (_, credential) = await controller.handle(AuthenticationChallenge(protectionSpace: space))
        #expect(credential == .password(user: "jdoe", Password("another")))

        let told = await controller.told(events)
        try #require(told.count == 5)
        #expect(told[0] == .answered(space, with: "enrollment"))
        #expect(told[1] == .rejected(space, credential: "enrollment"))
        #expect(told[4] == .answered(space, with: "enrollment"))
    }

    @Test func aFailureOfAnotherPasswordDoesNotCountAgainstTheEnrolledOne() async throws {
        let controller = try LibraryHome(Self.site).controller()
        let space = ProtectionSpace.git(.basic)
        _ = await controller.handle(AuthenticationChallenge(protectionSpace: space))
        let failed = AuthenticationChallenge(
            protectionSpace: space, proposedCredential: .password(user: "guest", Password("guess")),
            previousFailureCount: 1)
        #expect(await controller.handle(failed).0 == .performDefaultHandling)
        #expect(try controller.canHandle(space))
    }

    @Test func theEnrolledCredentialIsRecognisedWhenProposed() async throws {
        let controller = try LibraryHome(Self.site).controller()
        let space = ProtectionSpace.git(.ntlm)
        let (_, credential) = await controller.handle(AuthenticationChallenge(protectionSpace: space))
        let failed = AuthenticationChallenge(
            protectionSpace: space, proposedCredential: credential, previousFailureCount: 1)
        #expect(await controller.handle(failed).0 == .performDefaultHandling)
        #expect(throws: ChallengeError.self) { try controller.canHandle(space) }
    }

    // MARK: Completion handler

    @Test func theHandlerIsCalledOnceIfTheResultIsTrue() async throws {
        let controller = try LibraryHome(Self.site).controller()
        let calls = Mutex(0)
        let (disposition, credential) = await withCheckedContinuation { continuation in
            let challenge = AuthenticationChallenge(protectionSpace: .git(.basic))
            let will = controller.handleChallenge(challenge) { disposition, credential in
                calls.withLock { $0 += 1 }
                continuation.resume(returning: (disposition, credential))
            }
            #expect(will)
        }
        #expect(disposition == .useCredential)
        #expect(credential == .password(user: "jdoe", Password(LibraryHome.password)))
        #expect(calls.withLock { $0 } == 1)
    }

    @Test(arguments: [
        AuthenticationChallenge(protectionSpace: .git(.serverTrust)),
        AuthenticationChallenge(protectionSpace: .git(.bearer)),
        AuthenticationChallenge(protectionSpace: .git(.basic), previousFailureCount: 1),
        AuthenticationChallenge(protectionSpace: ProtectionSpace(host: "", authenticationMethod: .basic)),
    ])
    func theHandlerIsNeverCalledIfTheResultIsFalse(_ challenge: AuthenticationChallenge) async throws {
        let controller = try LibraryHome(Self.site).controller()
        let events = controller.events
        let called = Mutex(false)
        #expect(!controller.handleChallenge(challenge) { _, _ in called.withLock { $0 = true } })
        guard case .handedBack(challenge.protectionSpace, _)? = await controller.told(events).first else {
            Issue.record("there is no event")
            return
        }
        #expect(!called.withLock { $0 })
    }

    // MARK: Concurrency

    @Test func aThousandConcurrentCallsAreAnsweredWhileTheHomeChanges() async throws {
        let home = try LibraryHome(Self.site + "https://*.wiki.corp.example\n", identities: ["laptop"])
        let controller = try home.controller()
        let answered = await withTaskGroup(of: Bool.self) { group in
            for number in 0..<1000 {
                group.addTask {
                    switch number % 50 {
                    case 7: try? home.write(sites: Self.site + "https://*.wiki.corp.example\n# \(number)\n")
                    case 13: _ = controller.events
                    default: break
                    }
                    let method: AuthenticationMethod = number % 3 == 0 ? .clientCertificate : .basic
                    let space = ProtectionSpace(
                        host: "site\(number % 40).wiki.corp.example", authenticationMethod: method)
                    let challenge = AuthenticationChallenge(protectionSpace: space)
                    let isAnswered = await controller.handle(challenge).0 == .useCredential
                    controller.answerAccepted(challenge)
                    return isAnswered
                }
            }
            return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
        #expect(answered == 1000)
    }

    @Test func aCancelledTaskGetsNoCredential() async throws {
        let controller = try LibraryHome(Self.site).controller()
        let task = Task {
            while !Task.isCancelled { await Task.yield() }
            return await controller.handle(AuthenticationChallenge(protectionSpace: .git(.basic)))
        }
        task.cancel()
        let (disposition, credential) = await task.value
        #expect(disposition == .cancelAuthenticationChallenge)
        #expect(credential == nil)
    }

    @Test func aStreamThatIsNotReadBuffersTheNewestEvents() async throws {
        let controller = try LibraryHome(Self.site).controller()
        let events = controller.events
        for number in 0..<300 {
            let space = ProtectionSpace(host: "site\(number).example", authenticationMethod: .basic)
            _ = await controller.handle(AuthenticationChallenge(protectionSpace: space))
        }
        guard case .handedBack(let space, _)? = await controller.told(events).first else {
            Issue.record("there is no event")
            return
        }
        // The event that ends the test takes one place.
        #expect(space.host == "site45.example")
    }

    @Test func eventsEndWithTheController() async throws {
        let home = try LibraryHome(Self.site)
        var controller: ChallengeController? = try home.controller()
        let events = try #require(controller?.events)
        controller = nil
        var count = 0
        for await _ in events { count += 1 }
        #expect(count == 0)
    }
}
