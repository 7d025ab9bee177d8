package org.apache.spark.scheduler.bellows

import java.io.{BufferedInputStream, ByteArrayOutputStream, EOFException, FileInputStream, IOException, InputStream}
import java.net.{StandardProtocolFamily, URI, UnixDomainSocketAddress}
import java.net.http.{HttpClient, HttpRequest, HttpResponse}
import java.nio.ByteBuffer
import java.nio.channels.{Channels, SocketChannel}
import java.nio.charset.StandardCharsets.{ISO_8859_1, UTF_8}
import java.nio.file.{Files, Paths}
import java.security.KeyStore
import java.security.cert.CertificateFactory
import java.time.Duration
import javax.net.ssl.{SSLContext, TrustManagerFactory}

/** An answer of the daemon: the status of HTTP, and the body. */
private[spark] final case class Answer(status: Int, body: Array[Byte]) {
  /** The JSON object of a message, which is its first line. */
  def head: com.fasterxml.jackson.databind.JsonNode = {
    val end = body.indexOf('\n'.toByte)
    Json.parse(if (end < 0) body else body.take(end))
  }

  /** Why the daemon refuses: the detail of a problem of RFC 9457, or the text. */
  def refusal: String = {
    val text = new String(body, UTF_8).trim
    try {
      Option(Json.parse(text).path("detail").asText).filter(_.nonEmpty).getOrElse(text)
    } catch { case _: IOException => text }
  }
}

/** Sends requests to the daemon, one at a time. */
private[spark] trait Link extends AutoCloseable {
  /** It throws IOException if the daemon cannot be reached. */
  def send(method: String, path: String, body: Array[Byte]): Answer

  /** Ends a request that waits for its answer, which then throws. */
  def close(): Unit
}

/** HTTP/1.1 over a socket of Unix, which the library of Java does not offer. */
private[spark] final class SocketLink(path: String) extends Link {
  private final class Connection(val channel: SocketChannel) {
    val in = new BufferedInputStream(Channels.newInputStream(channel), 1 << 16)
  }

  @volatile private var connection: Connection = _
  @volatile private var closed = false

  override def send(method: String, target: String, body: Array[Byte]): Answer =
    try {
      val c = connected()
      val head = s"$method $target HTTP/1.1\r\nHost: bellows\r\nContent-Type: ${Link.MediaType}\r\n" +
        s"Content-Length: ${body.length}\r\n\r\n"
      val request = ByteBuffer.wrap(head.getBytes(ISO_8859_1) ++ body)
      while (request.hasRemaining) c.channel.write(request)
      answer(c)
    } catch {
      case e: IOException =>
        disconnect()
        throw e
    }

  private def connected(): Connection = {
    if (connection == null) {
      val channel = SocketChannel.open(StandardProtocolFamily.UNIX)
      connection = new Connection(channel)
      channel.connect(UnixDomainSocketAddress.of(path))
    }
    if (closed) throw new IOException("the link was closed")
    connection
  }

  private def disconnect(): Unit = {
    val c = connection
    connection = null
    if (c != null) c.channel.close()
  }

  override def close(): Unit = {
    closed = true
    disconnect()
  }

  private def answer(c: Connection): Answer = {
    val status = line(c.in).split(' ') match {
      case Array(version, code, _*) if version.startsWith("HTTP/1.") => code.toInt
      case other => throw new IOException(s"the daemon answers with ${other.mkString(" ")}: not HTTP")
    }
    val headers = Iterator.continually(line(c.in)).takeWhile(_.nonEmpty).map { text =>
      val (name, value) = text.span(_ != ':')
      name.trim.toLowerCase(java.util.Locale.ROOT) -> value.drop(1).trim
    }.toMap
    val body =
      if (headers.get("transfer-encoding").contains("chunked")) chunks(c.in)
      else headers.get("content-length").map(n => exactly(c.in, n.toInt)).getOrElse(Array.emptyByteArray)
    if (headers.get("connection").contains("close")) disconnect()
    Answer(status, body)
  }

  private def chunks(in: InputStream): Array[Byte] = {
    val out = new ByteArrayOutputStream
    var size = Integer.parseInt(line(in).takeWhile(_ != ';').trim, 16)
    while (size > 0) {
      out.write(exactly(in, size))
      line(in)
      size = Integer.parseInt(line(in).takeWhile(_ != ';').trim, 16)
    }
    while (line(in).nonEmpty) {}
    out.toByteArray
  }

  private def exactly(in: InputStream, size: Int): Array[Byte] = {
    val bytes = in.readNBytes(size)
    if (bytes.length < size) throw new EOFException("the daemon closed the connection")
    bytes
  }

  private def line(in: InputStream): String = {
    val out = new ByteArrayOutputStream
    var b = in.read()
    while (b != '\n') {
      if (b < 0) throw new EOFException("the daemon closed the connection")
      if (b != '\r') out.write(b)
      b = in.read()
    }
    new String(out.toByteArray, ISO_8859_1)
  }
}

/** HTTPS to a daemon on the network, with a token. ca is a file of authorities; None takes those of Java. */
private[spark] final class NetworkLink(server: String, token: String, ca: Option[String]) extends Link {
  private val client = {
    val builder = HttpClient.newBuilder().connectTimeout(Duration.ofSeconds(10))
    ca.foreach(file => builder.sslContext(trusting(file)))
    builder.build()
  }
  @volatile private var waiting: java.util.concurrent.CompletableFuture[HttpResponse[Array[Byte]]] = _

  private def trusting(file: String): SSLContext = {
    val store = KeyStore.getInstance(KeyStore.getDefaultType)
    store.load(null, null)
    val in = new FileInputStream(file)
    try {
      val authorities = CertificateFactory.getInstance("X.509").generateCertificates(in).iterator()
      while (authorities.hasNext) store.setCertificateEntry(store.size.toString, authorities.next())
    } finally in.close()
    val trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm)
    trust.init(store)
    val context = SSLContext.getInstance("TLS")
    context.init(null, trust.getTrustManagers, null)
    context
  }

  override def send(method: String, path: String, body: Array[Byte]): Answer = {
    val request = HttpRequest.newBuilder(URI.create(server.stripSuffix("/") + path))
      .timeout(Duration.ofSeconds(60)) // beyond the 20 s for which the daemon lets a request wait
      .header("Content-Type", Link.MediaType).header("Authorization", s"Bearer $token")
      .method(method, HttpRequest.BodyPublishers.ofByteArray(body)).build()
    waiting = client.sendAsync(request, HttpResponse.BodyHandlers.ofByteArray())
    try {
      val response = waiting.get()
      Answer(response.statusCode, response.body)
    } catch {
      case e: java.util.concurrent.ExecutionException if e.getCause.isInstanceOf[IOException] => throw e.getCause
      case e: java.util.concurrent.CancellationException => throw new IOException("the link was closed", e)
    }
  }

  override def close(): Unit = Option(waiting).foreach(_.cancel(true))
}

private[spark] object Link {
  val MediaType = "application/vnd.bellows.message"
}

/** Where the daemon is: a socket of this machine, or a server on the network. */
private[spark] sealed trait Place {
  def link(): Link
}

private[spark] object Place {
  final case class Socket(path: String) extends Place {
    override def link(): Link = new SocketLink(path)
    override def toString: String = s"socket $path"
  }

  final case class Server(url: String, token: String, ca: Option[String]) extends Place {
    override def link(): Link = new NetworkLink(url, token, ca)
    override def toString: String = s"server $url"
  }

  /**
   * The place that the configuration names, else the environment, as for the commands of bellows: spark.bellows.server
   * with spark.bellows.tokenFile and spark.bellows.caFile, or spark.bellows.socket. env is the environment.
   */
  def of(conf: String => Option[String], env: Map[String, String]): Place = {
    def set(name: String): Option[String] = env.get(name).filter(_.nonEmpty)
    val socket = conf("spark.bellows.socket")
    val server = conf("spark.bellows.server").orElse(if (socket.isEmpty) set("BELLOWS_SERVER") else None)
    (server, socket) match {
      case (Some(_), Some(_)) =>
        throw new IllegalArgumentException("spark.bellows.socket, spark.bellows.server: only one of them can be given")
      case (Some(url), None) =>
        require(url.startsWith("https://"), s"spark.bellows.server: $url must begin with https://")
        val file = conf("spark.bellows.tokenFile").orElse(set("BELLOWS_TOKEN_FILE")).getOrElse(
          throw new IllegalArgumentException(
            s"server $url: needs a token: name its file with spark.bellows.tokenFile or BELLOWS_TOKEN_FILE"))
        val token = new String(Files.readAllBytes(Paths.get(file)), UTF_8).trim
        Server(url, token, conf("spark.bellows.caFile").orElse(set("BELLOWS_CA_FILE")))
      case _ => Socket(socket.orElse(set("BELLOWS_SOCKET")).getOrElse(usual(set)))
    }
  }

  /** The socket where bellows up listens if nothing was named. */
  private def usual(env: String => Option[String]): String = {
    val machine = "/run/bellows/bellows.sock"
    val absolute = (name: String) => env(name).filter(_.startsWith("/"))
    lazy val state = absolute("XDG_STATE_HOME").getOrElse(env("HOME").getOrElse("") + "/.local/state") + "/bellows"
    val own =
      if (env("BELLOWS_STATE").nonEmpty) env("BELLOWS_STATE").get + "/bellows.sock"
      else if (System.getProperty("user.name") == "root") machine
      else absolute("XDG_RUNTIME_DIR").map(_ + "/bellows/bellows.sock").getOrElse(state + "/bellows.sock")
    val named = env("BELLOWS_STATE").nonEmpty
    if (!named && !Files.exists(Paths.get(own)) && Files.exists(Paths.get(machine))) machine else own
  }
}
