// SPDX-License-Identifier: Apache-2.0

import Foundation
import NIOCore
import Synchronization

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A response with back-pressure: its content arrives at the speed of its reader. If it is released before its end, the
/// transfer is cancelled.
struct StreamedResponse: Sendable {
    /// Without content.
    let head: ProxiedResponse
    let content: StreamedContent

    /// Sends a request, and waits for the head of the response. Throws the errors of the transfer, and
    /// `URLError.cancelled` if the task is cancelled.
    init(
        _ request: ProxiedRequest, over link: ProxyLink, by deadline: NIODeadline,
        sent: (@Sendable (UInt64) -> Void)?
    ) async throws {
        let transfer = link.newHandle()
        let arrived = FirstResult()
        let made = StreamedContent.Source.makeSequence(
            elementType: Data.self, backPressureStrategy: .init(lowWatermark: 4, highWatermark: 16),
            finishOnDeinit: true, delegate: TransferControl(transfer: transfer))
        content = StreamedContent(made.sequence)
        let source = made.source
        link.send(
            request, by: deadline, as: transfer,
            pieces: { piece in
                switch piece {
                case .head(let head):
                    arrived.fulfil(.success(head))
                    return true
                case .content(let data):
                    if case .produceMore = source.yield(data) { return true }
                    return false
                }
            }, sent: sent
        ) { result in
            switch result {
            case .success(let head):
                arrived.fulfil(.success(head))
                source.finish()
            case .failure(let error):
                arrived.fulfil(.failure(error))
                source.finish(error)
            }
        }
        head = try await withTaskCancellationHandler {
            try await arrived.value
        } onCancel: {
            transfer.cancel()
            arrived.fulfil(.failure(URLError(.cancelled)))
        }
    }

    /// Reads the content to its end, so that the connection can carry another request, unless it is long.
    func discard() async throws {
        var bytes = 0
        for try await piece in content {
            bytes += piece.count
            if bytes > 64 * 1024 { return }
        }
    }
}

/// The content of a response, piece by piece. It can be read once.
struct StreamedContent: AsyncSequence, Sendable {
    typealias Source = NIOThrowingAsyncSequenceProducer<
        Data, any Error, NIOAsyncSequenceProducerBackPressureStrategies.HighLowWatermark, TransferControl
    >

    private let source: Source
    private let isRead = Taken()

    fileprivate init(_ source: Source) { self.source = source }

    struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate var source: Source.AsyncIterator?

        mutating func next() async throws -> Data? {
            guard let source else {
                let reason = "the content of a response can be read only once"
                throw URLError(.unknown, userInfo: [NSLocalizedDescriptionKey: reason])
            }
            do {
                return try await source.next()
            } catch is CancellationError {
                throw URLError(.cancelled)
            }
        }
    }

    func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(source: isRead.take() ? source.makeAsyncIterator() : nil)
    }

    private final class Taken: Sendable {
        private let isTaken = Atomic(false)
        /// True for the first caller.
        func take() -> Bool { !isTaken.exchange(true, ordering: .relaxed) }
    }
}

/// Lets the reader of a response control its transfer.
struct TransferControl: NIOAsyncSequenceProducerDelegate {
    fileprivate let transfer: URLSessionTransfer.Handle

    func produceMore() { transfer.resume() }

    func didTerminate() { transfer.cancel() }
}

/// A result that one task waits for. Only the first counts.
private final class FirstResult: Sendable {
    private enum State {
        case open
        case waiting(CheckedContinuation<ProxiedResponse, any Error>)
        case done(Result<ProxiedResponse, any Error>)
    }

    private let state = Mutex(State.open)

    func fulfil(_ result: Result<ProxiedResponse, any Error>) {
        let waiting: CheckedContinuation<ProxiedResponse, any Error>? = state.withLock { state in
            switch state {
            case .open:
                state = .done(result)
                return nil
            case .waiting(let continuation):
                state = .done(result)
                return continuation
            case .done:
                return nil
            }
        }
        waiting?.resume(with: result)
    }

    /// The result, for one caller.
    var value: ProxiedResponse {
        get async throws {
            try await withCheckedThrowingContinuation { continuation in
                let known: Result<ProxiedResponse, any Error>? = state.withLock { state in
                    if case .done(let result) = state { return result }
                    state = .waiting(continuation)
                    return nil
                }
                if let known { continuation.resume(with: known) }
            }
        }
    }
}
