// SPDX-License-Identifier: Apache-2.0

import CountersignCGSSAPI
import CountersignChallenges
import CountersignSPNEGO

/// The client's side of one Kerberos dialogue: a GSS-API context (RFC 4121), whose tokens are framed here in SPNEGO
/// (RFC 4178), which offers Kerberos as the only mechanism. GSS-API parses the Kerberos messages.
///
/// SPNEGO is not left to GSS-API: its errors would hide the cause, and it would offer every installed mechanism.
///
/// Unchecked: a dialogue takes one step at a time, and none after one that timed out.
final class InitiatorContext: @unchecked Sendable {
    private static let mechanisms = NegTokenInit(mechTypes: [MechanismOID.kerberos], mechToken: nil)

    let service: String
    private let delegatesByPolicy: Bool
    /// Nil for the user's own ticket.
    private var ticket: ObtainedTicket?
    private var context: gss_ctx_id_t?
    private var name: ServiceName?
    private var binding: ChannelBinding?
    private var isEstablished = false

    /// `service` has the form `HTTP/host`. `delegatesByPolicy`: the user's ticket is forwarded to the server if the KDC
    /// permits it (ok-as-delegate, RFC 4120 §2.8).
    init(service: String, delegatesByPolicy: Bool) {
        self.service = service
        self.delegatesByPolicy = delegatesByPolicy
    }

    deinit { csn_gss_delete(&context) }

    // MARK: Steps. Each may block until a KDC responds.

    /// The first token, with `ticket`, or with the user's own if that is nil.
    func open(_ binding: ChannelBinding?, with ticket: ObtainedTicket?) throws(KerberosError) -> DialogueToken {
        self.binding = binding
        self.ticket = ticket
        name = try .named(service)
        if ticket == nil { try UserTicket.checkCaches() }
        guard let token = try step(nil) else { throw KerberosError(.failed, "GSS-API made no token") }
        var message = Self.mechanisms
        message.mechToken = token
        // In most dialogues the server accepts this token, so the request carries its content.
        return DialogueToken(message.serialized, expectsReply: false)
    }

    /// The reply to the server's token, if it does not accept the first one.
    func reply(to serverToken: [UInt8]) throws(KerberosError) -> DialogueToken {
        let message = try Self.parse(serverToken)
        let token = try take(message)
        guard token != nil || isEstablished else {
            throw KerberosError(.refused, "the server sent a SPNEGO token without a Kerberos token")
        }
        let mic = isEstablished ? try mechListMIC() : nil
        return DialogueToken(
            NegTokenResp(negState: nil, responseToken: token, mechListMIC: mic).serialized, expectsReply: false)
    }

    /// Verifies the token of the final response, which proves that the server has the service's key. Returns the reason
    /// if it proves nothing: many acceptors send no Kerberos token, and some send one without SPNEGO. Throws if the
    /// proof is wrong, or if the server rejected the ticket.
    func conclude(_ serverToken: [UInt8]) throws(KerberosError) -> String? {
        let message: NegTokenResp
        do throws(KerberosError) {
            message = try Self.parse(serverToken)
        } catch {
            guard error.code == .malformed else { throw error }
            return error.sentence
        }
        guard message.negState == .reject || message.responseToken?.isEmpty == false || isEstablished else {
            return "its SPNEGO token contains no Kerberos token"
        }
        guard try take(message) == nil, isEstablished else { return "it wants another Kerberos token" }
        return nil
    }

    // MARK: SPNEGO

    private static func parse(_ serverToken: [UInt8]) throws(KerberosError) -> NegTokenResp {
        let message: NegTokenResp
        do throws(SPNEGOError) {
            message = try NegTokenResp(parsing: serverToken)
        } catch {
            throw KerberosError(.malformed, error.detail)
        }
        let mechanism = message.supportedMech
        guard mechanism == nil || mechanism == MechanismOID.kerberos || mechanism == MechanismOID.kerberosOfWindows2000
        else { throw KerberosError(.refused, "the server chose a SPNEGO mechanism other than Kerberos") }
        return message
    }

    /// Passes the server's Kerberos token on and verifies its mechListMIC. An error message of the server's, which may
    /// come with a rejection, says more than the rejection.
    private func take(_ message: NegTokenResp) throws(KerberosError) -> [UInt8]? {
        var token: [UInt8]?
        if let received = message.responseToken, !received.isEmpty {
            guard !isEstablished else { throw KerberosError(.malformed, "the server sent one Kerberos token too many") }
            token = try step(received)
        }
        guard message.negState != .reject else {
            throw KerberosError(.refused, "the server rejected the Kerberos ticket")
        }
        if let mic = message.mechListMIC { try verify(mic) }
        return token
    }

    // MARK: GSS-API

    /// Returns the token to send; nil without one.
    private func step(_ received: [UInt8]?) throws(KerberosError) -> [UInt8]? {
        guard let name else { throw KerberosError(.failed, "the dialogue has not begun") }
        // Mutual authentication: the server must prove that it has the key. Integrity is for SPNEGO's mechListMIC.
        var flags = csn_GSS_C_MUTUAL_FLAG | csn_GSS_C_INTEG_FLAG
        if delegatesByPolicy { flags |= csn_GSS_C_DELEG_POLICY_FLAG }
        var minor: OM_uint32 = 0
        var output = gss_buffer_desc()
        let data = binding?.applicationData
        let major = Self.withBytes(data) { data in
            Self.withBytes(received) { received in
                csn_gss_initiate(
                    &minor, ticket?.credential, &context, name.name, flags, data?.baseAddress, data?.count ?? 0,
                    received?.baseAddress,
                    received?.count ?? 0, &output)
            }
        }
        defer { csn_gss_release(&output) }
        guard csn_gss_error(major) == 0 else {
            let error = KerberosError(major: major, minor: minor, service: name.text)
            if error.code == .wrongServiceKey, let received, !Self.isErrorMessage(received) {
                throw KerberosError(.refused, "the server did not prove that it has the key of \(service)")
            }
            if error.code == .noTicket, ticket == nil { try UserTicket.checkClientKeytab() }
            throw error
        }
        isEstablished = major & csn_GSS_S_CONTINUE_NEEDED == 0
        return output.length > 0 ? output.bytes : nil
    }

    /// Whether the token contains a KRB-ERROR (RFC 4121 §4.1), with which the server reports a failure. Otherwise it
    /// contains the server's proof.
    private static func isErrorMessage(_ token: [UInt8]) -> Bool {
        let mechanism: [UInt8] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x12, 0x01, 0x02, 0x02]
        guard let start = token.firstRange(of: mechanism) else { return false }
        return token[start.upperBound...].starts(with: [0x03, 0x00])
    }

    private static func withBytes<Value>(_ bytes: [UInt8]?, _ body: (UnsafeRawBufferPointer?) -> Value) -> Value {
        guard let bytes else { return body(nil) }
        return bytes.withUnsafeBytes(body)
    }

    private func mechListMIC() throws(KerberosError) -> [UInt8] {
        let list = Self.mechanisms.mechTypeList
        var minor: OM_uint32 = 0
        var mic = gss_buffer_desc()
        let major = csn_gss_get_mic(&minor, context, list, list.count, &mic)
        guard csn_gss_error(major) == 0 else { throw KerberosError(major: major, minor: minor, service: service) }
        defer { csn_gss_release(&mic) }
        return mic.bytes
    }

    private func verify(_ mic: [UInt8]) throws(KerberosError) {
        let list = Self.mechanisms.mechTypeList
        var minor: OM_uint32 = 0
        guard isEstablished, csn_gss_error(csn_gss_verify_mic(&minor, context, list, list.count, mic, mic.count)) == 0
        else { throw KerberosError(.refused, "the server's mechListMIC does not fit the session key") }
    }
}
