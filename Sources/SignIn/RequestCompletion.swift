// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignOAuth
import Dispatch
import Synchronization

/// Completes a request with the client's assertion on a thread that may block, with an end in time: a key in a token
/// waits for the device, or for a person who touches it, and cannot be stopped. The thread is left behind then.
final class RequestCompletion: Sendable {
    typealias Outcome = Result<ProviderRequest, ProviderFailure>

    private static let threads = DispatchQueue(label: "countersign.assertions", attributes: .concurrent)
    private static let deadlines = DispatchQueue(label: "countersign.assertions.deadlines")
    private static let running = Atomic(0)
    /// The most threads at a time. Without a limit, a token that hangs would use up the system's threads.
    private static let threadLimit = 16

    private let state = Mutex<(@Sendable (Outcome) -> Void)?>(nil)

    /// Runs `body`. Returns a failure after `limit`, or when the task is cancelled.
    static func run(
        within limit: Duration, _ body: @escaping @Sendable () throws(OAuthError) -> ProviderRequest
    ) async -> Outcome {
        let completion = RequestCompletion()
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                completion.start(within: limit, body) { continuation.resume(returning: $0) }
            }
        } onCancel: {
            completion.end(.failure(ProviderFailure("the signature was cancelled", isTransient: false)))
        }
    }

    private func start(
        within limit: Duration, _ body: @escaping @Sendable () throws(OAuthError) -> ProviderRequest,
        _ done: @escaping @Sendable (Outcome) -> Void
    ) {
        state.withLock { $0 = done }
        if Task.isCancelled { return end(.failure(ProviderFailure("the signature was cancelled", isTransient: false))) }
        guard Self.running.add(1, ordering: .relaxed).newValue <= Self.threadLimit else {
            Self.running.subtract(1, ordering: .relaxed)
            return end(
                .failure(
                    ProviderFailure(
                        "\(Self.threadLimit) earlier signatures with clients' keys have not ended",
                        hint: Self.hint, isTransient: true)))
        }
        Self.threads.async { [self] in
            let outcome = Outcome(completing: body)
            Self.running.subtract(1, ordering: .relaxed)
            end(outcome)
        }
        Self.deadlines.asyncAfter(deadline: .now() + limit / .seconds(1)) { [weak self] in
            self?.end(
                .failure(
                    ProviderFailure(
                        "the client's key has not signed within \(limit / .seconds(1)) seconds", hint: Self.hint,
                        isTransient: true)))
        }
    }

    private static let hint = "check the token that has the key of the profile's \"client_identity\""

    /// Only the first outcome counts.
    private func end(_ outcome: Outcome) {
        let done = state.withLock { done in
            defer { done = nil }
            return done
        }
        done?(outcome)
    }
}

extension RequestCompletion.Outcome {
    /// The outcome of `body`, without any waiting.
    init(completing body: () throws(OAuthError) -> ProviderRequest) {
        do throws(OAuthError) {
            self = .success(try body())
        } catch {
            self = .failure(ProviderFailure(error.detail, hint: error.hint, isTransient: false))
        }
    }
}
