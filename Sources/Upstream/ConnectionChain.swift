// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// One step from a TCP connection to an origin. It does one thing to the channel that the previous step has made: it
/// speaks CONNECT or SOCKS to a parent, or TLS to the origin.
///
/// ``run(on:in:)`` is called on the channel's event loop. The step ends by calling
/// ``ConnectionChain/stepSucceeded(_:)`` or ``ConnectionChain/stepFailed(_:)`` once, at once or later. Before it
/// succeeds, it removes its own handlers from the channel. It must have consumed everything that the peer sends before
/// the next step, because bytes that it leaves are lost. The chain enforces the time limit and closes the channel.
package protocol ConnectionStep: AnyObject {
    /// The kind of step, for errors.
    var kind: UpstreamError.Step { get }
    /// The peer of this step as `host:port`, for errors.
    var place: String { get }
    /// How long the step may take.
    var limit: TimeAmount { get }

    func run(on channel: any Channel, in chain: ConnectionChain)

    /// The chain ends while this step is running, because its limit has passed or the caller has cancelled. The step
    /// releases the chain.
    func chainEnded()
}

/// Opens one connection: TCP first, then each ``ConnectionStep`` in turn.
///
///     resolve and TCP → a parent's tunnel, if any → TLS, if any
///
/// The first step that fails or exceeds its limit ends the chain, which closes the channel and reports the step and its
/// place. Resolving and TCP are one step, ``TCPStep``, because RFC 8305 lets connection attempts begin while names are
/// still being looked up. Everything happens on one event loop.
package final class ConnectionChain {
    private let loop: any EventLoop
    private let steps: [any ConnectionStep]
    /// How many steps have begun; the last of them is running.
    private var begun = 0
    private var channel: (any Channel)?
    /// Nil as soon as the result is known or the caller has cancelled.
    private var completion: ((Result<any Channel, UpstreamError>) -> Void)?

    private var timeLeft = TimeAmount.zero
    private var resumedAt = NIODeadline.uptimeNanoseconds(0)
    private var timer: Scheduled<Void>?
    /// No step follows the running one.
    private var isLeaving = false

    /// `completion` is called once, unless ``cancel()`` is called before.
    init(
        loop: any EventLoop, steps: [any ConnectionStep],
        completion: @escaping (Result<any Channel, UpstreamError>) -> Void
    ) {
        self.loop = loop
        self.steps = steps
        self.completion = completion
    }

    /// Of this end of the connection; nil before TCP has connected.
    var localAddress: String? { channel?.localAddress?.ipAddress }

    func start(_ tcp: TCPStep) {
        tcp.run(on: loop) { result in
            switch result {
            case .success(let channel): self.runNextStep(on: channel)
            case .failure(let error): self.finish(.failure(error))
            }
        }
    }

    /// Runs the next step on a channel, or succeeds with the channel after the last one.
    func runNextStep(on channel: any Channel) {
        guard completion != nil else { return channel.close(promise: nil) }
        self.channel = channel
        guard begun < steps.count, !isLeaving else { return finish(.success(channel)) }
        let step = steps[begun]
        begun += 1
        pauseClock()
        timeLeft = step.limit
        resumeClock()
        step.run(on: channel, in: self)
    }

    // MARK: For the running step

    /// `channel` is passed to the next step: the channel of this step, or one that it made on top of it.
    package func stepSucceeded(_ channel: any Channel) {
        runNextStep(on: channel)
    }

    package func stepFailed(_ error: UpstreamError) {
        guard begun > 0 else { return }
        finish(.failure(error.inStep(steps[begun - 1].kind, at: steps[begun - 1].place)))
    }

    /// Stops the clock of the running step, for the time of a decision outside the chain.
    package func pauseClock() {
        guard let timer else { return }
        timer.cancel()
        self.timer = nil
        timeLeft = timeLeft - (loop.now - resumedAt)
    }

    package func resumeClock() {
        guard timer == nil, completion != nil else { return }
        resumedAt = loop.now
        timer = loop.assumeIsolated().scheduleTask(in: timeLeft) { self.limitPassed() }
    }

    // MARK: Ends

    /// Ends after the running step, or after `limit`. The completion is called.
    func leave(within limit: TimeAmount) {
        isLeaving = true
        loop.assumeIsolated().scheduleTask(in: limit) {
            self.finish(.failure(UpstreamError(.tunnelTimedOut, "nobody waits")), ending: self.steps[self.begun - 1])
        }
    }

    /// Cancels: closes the channel, now or once TCP has connected, and does not call `completion`.
    package func cancel() {
        guard completion != nil else { return }
        completion = nil
        pauseClock()
        if begun > 0 { steps[begun - 1].chainEnded() }
        channel?.close(promise: nil)
        channel = nil
    }

    private func limitPassed() {
        timer = nil
        let step = steps[begun - 1]
        let error = UpstreamError.timedOut(in: step.kind, at: step.place)
        finish(.failure(error.inStep(step.kind, at: step.place)), ending: step)
    }

    private func finish(_ result: Result<any Channel, UpstreamError>, ending step: (any ConnectionStep)? = nil) {
        guard let completion else { return }
        self.completion = nil
        pauseClock()
        step?.chainEnded()
        if case .failure = result { channel?.close(promise: nil) }
        channel = nil
        completion(result)
    }
}
