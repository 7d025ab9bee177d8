package org.apache.spark.scheduler.bellows

import java.util.Base64

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}

/**
 * What an executor tells the endpoint of its driver when it serves the application: from then on, tasks that are sent
 * to it find their own environment. attachment is the number that the pool has given.
 */
private[spark] final case class Active(executorId: String, attachment: Long)

/** JSON by the library that comes with Spark. */
private[spark] object Json {
  private val mapper = new ObjectMapper()

  def parse(text: Array[Byte]): JsonNode = mapper.readTree(text)

  def parse(text: String): JsonNode = mapper.readTree(text)

  def text(pairs: (String, Any)*): String = mapper.writeValueAsString(node(pairs))

  private def node(value: Any): AnyRef = value match {
    case pairs: Seq[_] if pairs.nonEmpty && pairs.forall(_.isInstanceOf[(_, _)]) =>
      val out = new java.util.LinkedHashMap[String, AnyRef]
      pairs.foreach { case (name, x) => out.put(name.toString, node(x)) }
      out
    case list: Iterable[_] =>
      val out = new java.util.ArrayList[AnyRef]
      list.foreach(x => out.add(node(x)))
      out
    case x => x.asInstanceOf[AnyRef]
  }
}

/**
 * What executors of a pool are to know of an application to serve it: the URL of its driver's endpoint, the versions
 * that its classes are of, its configuration, the key by which it encrypts its files, if it does, and its id.
 */
private[spark] final case class Payload(url: String, spark: String, scala: String, conf: Seq[(String, String)],
    ioKey: Option[Array[Byte]], app: String) {

  def bytes: Array[Byte] = {
    val key = ioKey.map(k => "io_key" -> Base64.getEncoder.encodeToString(k)).toSeq
    val pairs: Seq[(String, Any)] = Seq("url" -> url, "spark" -> spark, "scala" -> scala, "conf" -> conf, "app" -> app)
    Json.text(pairs ++ key: _*).getBytes("UTF-8")
  }
}

private[spark] object Payload {
  /** The binary version of Scala, such as 2.13. */
  val scala: String = _root_.scala.util.Properties.versionNumberString.split('.').take(2).mkString(".")

  def parse(bytes: Array[Byte]): Payload = {
    val json = Json.parse(bytes)
    val conf = Seq.newBuilder[(String, String)]
    val fields = json.path("conf").fields()
    while (fields.hasNext) {
      val field = fields.next()
      conf += field.getKey -> field.getValue.asText
    }
    Payload(json.path("url").asText, json.path("spark").asText, json.path("scala").asText, conf.result(),
      Option(json.get("io_key")).map(k => Base64.getDecoder.decode(k.asText)), json.path("app").asText)
  }
}
