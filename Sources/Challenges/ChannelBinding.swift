// SPDX-License-Identifier: Apache-2.0

/// What ties an answer to the TLS connection it travels on (RFC 5929), so that it is worth nothing on another.
package struct ChannelBinding: Equatable, Sendable {
    /// The channel-binding data with its prefix, as `gss_channel_bindings_struct.application_data` takes it.
    package let applicationData: [UInt8]

    /// `tls-server-end-point` (RFC 5929 §4): the hash of the origin's certificate, by the hash rules of §4.1.
    package static func tlsServerEndPoint(certificateHash: [UInt8]) -> ChannelBinding {
        ChannelBinding(applicationData: Array("tls-server-end-point:".utf8) + certificateHash)
    }
}
