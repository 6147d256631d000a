// SPDX-License-Identifier: Apache-2.0

import CountersignOAuth
import Dispatch
import Foundation
import Testing

@testable import CountersignSignIn

/// Keys in tokens that take their time.
@Suite struct RequestCompletionTests {
    private static func request() throws -> ProviderRequest {
        ProviderRequest(.token, try EndpointURL("https://id.example/token", "it"))
    }

    @Test func theOutcomeIsThatOfTheKey() async throws {
        let request = try Self.request()
        let outcome = await RequestCompletion.run(within: .seconds(600)) { () throws(OAuthError) in request }
        #expect(outcome == .success(request))
        let failure = await RequestCompletion.run(within: .seconds(600)) { () throws(OAuthError) in
            throw OAuthError(.configuration, .profile, "no key", hint: "get one")
        }
        #expect(failure == .failure(ProviderFailure("no key", hint: "get one", isTransient: false)))
    }

    /// The thread is left behind.
    @Test func aSignatureThatHangsEndsInTime() async throws {
        let request = try Self.request()
        let gate = DispatchSemaphore(value: 0)
        defer { gate.signal() }
        let outcome = await RequestCompletion.run(within: .milliseconds(20)) { () throws(OAuthError) in
            gate.wait()
            return request
        }
        guard case .failure(let failure) = outcome else { throw OAuthError(.refused, .profile, "it has ended") }
        #expect(failure.isTransient && failure.detail.contains("has not signed within 0.02 seconds"))
        #expect(failure.hint?.contains("client_identity") == true)
    }

    /// As many as the concurrency pool has threads: each other task would wait for a token then.
    @Test func signaturesThatWaitLeaveThePoolFree() async throws {
        let request = try Self.request()
        let count = min(ProcessInfo.processInfo.activeProcessorCount + 1, 16)
        let gate = DispatchSemaphore(value: 0)
        let outcomes = await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<count {
                group.addTask {
                    await RequestCompletion.run(within: .seconds(600)) { () throws(OAuthError) in
                        gate.wait()
                        return request
                    } == .success(request)
                }
            }
            // Runs only on a thread of the pool.
            await Task.detached { for _ in 0..<count { gate.signal() } }.value
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(outcomes == Array(repeating: true, count: count))
    }

    @Test func aCancellationDoesNotWaitForTheToken() async throws {
        let request = try Self.request()
        let gate = DispatchSemaphore(value: 0)
        defer { gate.signal() }
        let task = Task {
            await RequestCompletion.run(within: .seconds(600)) { () throws(OAuthError) in
                gate.wait()
                return request
            }
        }
        task.cancel()
        #expect(await task.value == .failure(ProviderFailure("the signature was cancelled", isTransient: false)))
    }
}
