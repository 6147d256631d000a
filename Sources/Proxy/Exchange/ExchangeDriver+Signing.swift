// SPDX-License-Identifier: Apache-2.0

import CountersignAWSSignature
import CountersignAnswering
import CountersignChallenges
import CountersignCryptography
import CountersignHTTP1
import CountersignSitePolicy
import CountersignUpstream
import NIOCore

/// A field value that is not secret.
private struct TextField: SecretFieldValue {
    let value: String

    var byteCount: Int { value.utf8.count }

    func forEachPart(_ write: (UnsafeRawBufferPointer) -> Void) {
        var value = value
        value.withUTF8 { write(UnsafeRawBufferPointer($0)) }
    }
}

/// Requests to AWS, which are signed again with the enrolled keys (`inject=aws`).
extension ExchangeDriver {
    /// Content that has no hash in the request is kept in memory up to this size. Lambda takes 6 MB, Kinesis 10.
    static let signedContentBytes = 16 << 20

    /// The client's signature with the placeholder; nil if the request has none.
    private func replaceableSignature(
        _ rule: SecretInjection
    ) throws(AWSSignatureError) -> (request: SignableRequest, client: ClientSignature)? {
        let fields = head.fields
        let request = SignableRequest(
            method: head.methodText, target: path, host: route.authority,
            fields: fields.lines.map { SignableRequest.Field(fields.name(of: $0), fields.valueBytes(of: $0)) })
        guard let client = try ClientSignature(of: request), rule.isPlaceholder(client.accessKeyID.utf8) else {
            return nil
        }
        return (request, client)
    }

    /// Waits for the content before the request is sent for the first time, if its hash is part of the signature and
    /// the client has not sent it. Returns whether it waits.
    func waitsForContentToSign(_ step: Step) -> Bool {
        guard let use = route.injection, case .aws = use.rule.place, head.hasBody, !body.hasEnded, mayBeAnswered,
            dialogue?.hasWaitedForContent != true
        else { return false }
        beginDialogue().hasWaitedForContent = true
        guard let found = try? replaceableSignature(use.rule), found.client.payload == .content else { return false }
        if case .length(let count) = head.framing, count > UInt64(body.limitBytes) { return false }
        mode = .deciding
        stepAwaitingContent = step
        if head.expectsContinue, !body.speed.hasBegun { client.inviteContent() }
        pace()
        return true
    }

    /// The content has come, or more of it than is kept: the request goes out without a new signature then. Returns
    /// whether that was what `step` has waited for.
    func endsWaitForContentToSign(_ step: Step) -> Bool {
        guard case .aws? = route.injection?.rule.place, dialogue?.hasWaitedForContent == true,
            delivery.buffered == nil
        else { return false }
        mode = .preparing
        drained(step)
        return true
    }

    /// The changes of a request that is signed with `keys`.
    func signedAgain(_ rule: SecretInjection, _ keys: EnrolledKeys) throws(WithheldInjection) -> Injected {
        let signature: NewSignature?
        do throws(AWSSignatureError) {
            signature = try newSignature(rule, keys)
        } catch {
            throw WithheldInjection(.other, error.detail)
        }
        guard let signature else {
            throw WithheldInjection(.ownAuthorization, "the request is not signed with the placeholder")
        }
        var injected = Injected()
        injected.omitted = signature.removedFields.filter { $0 != "Authorization" }
        switch signature.change {
        case .fields(let authorization, let token):
            injected.fields.append(AddedField("Authorization", TextField(value: authorization), replaces: true))
            if let token {
                injected.fields.append(AddedField("X-Amz-Security-Token", SecretField(secret: token), replaces: true))
                injected.omitted.removeAll { $0 == "X-Amz-Security-Token" }
            }
        case .target(let target): injected.target = target[...]
        }
        beginDialogue().chunkSigner = signature.chunkSigner
        return injected
    }

    /// Nil if the client has not signed the request with the placeholder.
    private func newSignature(
        _ rule: SecretInjection, _ keys: EnrolledKeys
    ) throws(AWSSignatureError) -> NewSignature? {
        guard let (request, client) = try replaceableSignature(rule) else { return nil }
        if let fault = client.timeFault(at: services.shared.wallClock()) { throw fault }
        let keys = try SigningKeys(
            accessKeyID: keys.accessKeyID, secret: keys.secret, sessionToken: keys.sessionToken)
        return try keys.sign(
            request, as: client, contentHash: client.payload == .content ? contentHash : nil,
            leavingOut: Set(route.omittedFields.map { $0.lowercased() }))
    }

    /// Nil if not all of the content is at hand.
    private var contentHash: String? {
        guard head.hasBody else { return SignedPayload.hash { _ in } }
        var isWhole = false
        let digits = SignedPayload.hash { update in isWhole = readContent(update) }
        return isWhole ? digits : nil
    }

    // MARK: Chunks with signatures

    /// Sends a part of the content, with the signatures of its chunks replaced. Returns false if the content cannot be
    /// sent; the exchange is over then.
    func sendPiece(_ content: ByteBuffer, to stream: any OriginStream) -> Bool {
        guard var signer = dialogue?.chunkSigner else {
            stream.send(content)
            return true
        }
        do throws(AWSSignatureError) {
            let signed = try signer.received(content.readableBytesView)
            // Before the send, which may re-enter this object.
            dialogue?.chunkSigner = signer
            if !signed.isEmpty { stream.send(ByteBuffer(bytes: signed)) }
            return true
        } catch {
            refuseContent(error)
            return false
        }
    }

    /// The end of the content. Returns false if its last chunk is missing; the exchange is over then.
    func finishContent(of stream: any OriginStream, trailers: FieldLines?) -> Bool {
        if let signer = dialogue?.chunkSigner {
            do throws(AWSSignatureError) {
                try signer.ended()
            } catch {
                refuseContent(error)
                return false
            }
        }
        stream.finish(trailers: trailers)
        return true
    }

    private func refuseContent(_ error: AWSSignatureError) {
        dialogue?.chunkSigner = nil
        if case .delivering = mode { return abort() }
        loseAnswer(.unknown)
        respond(OwnResponse(status: 400, detail: "the content cannot be signed again: \(error.detail)"))
    }
}
