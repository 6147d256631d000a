// SPDX-License-Identifier: Apache-2.0

import java.io.FileInputStream;
import java.net.Socket;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLException;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLSocket;
import javax.net.ssl.TrustManagerFactory;

/**
 * Verify.java ROOT HOST:PORT...: performs a TLS handshake with 127.0.0.1:PORT for each HOST and trusts only ROOT.
 * Prints one line per HOST: the host, and "accepted" or the error.
 */
public class Verify {
    public static void main(String[] arguments) throws Exception {
        KeyStore anchors = KeyStore.getInstance(KeyStore.getDefaultType());
        anchors.load(null, null);
        try (FileInputStream file = new FileInputStream(arguments[0])) {
            anchors.setCertificateEntry("root", CertificateFactory.getInstance("X.509").generateCertificate(file));
        }
        TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(anchors);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, trust.getTrustManagers(), null);
        for (int index = 1; index < arguments.length; index++) {
            String[] place = arguments[index].split(":");
            Socket plain = new Socket("127.0.0.1", Integer.parseInt(place[1]));
            try (SSLSocket socket =
                    (SSLSocket) context.getSocketFactory().createSocket(plain, place[0], plain.getPort(), true)) {
                SSLParameters parameters = socket.getSSLParameters();
                parameters.setEndpointIdentificationAlgorithm("HTTPS");
                socket.setSSLParameters(parameters);
                socket.startHandshake();
                System.out.println(place[0] + " accepted");
            } catch (SSLException fault) {
                Throwable cause = fault;
                while (cause.getCause() != null) cause = cause.getCause();
                System.out.println(place[0] + " " + cause);
            }
        }
    }
}
